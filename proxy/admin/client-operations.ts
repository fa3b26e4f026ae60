import type { Log } from '../../shared/log.ts'
import type { ThrottledClient, ThrottledClients } from '../decide/throttled-clients.ts'
import type { CounterAdmin, CounterState, ResetOutcome } from '../limiter/counter-admin.ts'
import type { Charge } from '../limiter/limiter.ts'

/** What an operator can ask of this gateway about clients, whatever it is made of. None of these rejects. */
export type ClientOperations = {
  /** In the order of the charges; counts nothing. */
  inspect(charges: readonly Charge[]): Promise<readonly CounterState[]>
  reset(charges: readonly Charge[]): Promise<ResetOutcome>
  /** Of this gateway, with the most refusals first. */
  listLimited(policyName: string | undefined, limit: number): Promise<readonly ThrottledClient[]>
}

/** In a process that has counters or asks Redis. Each reset is a line in the log and in a metric. */
export function createClientOperations(options: {
  readonly counters: Pick<CounterAdmin, 'inspect' | 'reset'>
  readonly limited: Pick<ThrottledClients, 'list'>
  readonly onReset: () => void
  readonly log: Log
}): ClientOperations {
  const { counters, limited, onReset, log } = options
  return {
    inspect: (charges) => counters.inspect(charges),
    async reset(charges) {
      const outcome = await counters.reset(charges)
      const [first, ...others] = charges
      // The client stays out of the log: it may be a person, or a secret's hash.
      const what = first && others.length === 0 ? { policy: first.policy.name } : { policies: charges.length }
      log.info({ ...what, outcome }, 'client reset by an operator')
      if (outcome === 'done') onReset()
      return outcome
    },
    listLimited: (policyName, limit) => Promise.resolve(limited.list(policyName, limit)),
  }
}
