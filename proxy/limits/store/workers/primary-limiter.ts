import type { Steps } from '../../../../shared/steps.ts'
import { readsStoredPlan } from '../../../policy/plans.ts'
import type { Policy } from '../../../policy.ts'
import { countsInFlight } from '../../algorithms/registry.ts'
import type { Charge, Decision, Reservation } from '../../limiter.ts'
import { UNKNOWN_PLAN } from '../../plans/plan-store.ts'
import { NamedPolicies } from './named-policies.ts'
import {
  isQuestion,
  isSettlements,
  nameOf,
  type Answer,
  type LimiterPort,
  type Question,
  type ResetMessage,
  type Settlement,
} from './worker-messages.ts'

/** Embedded counters, which answer at once. */
type EmbeddedCounters = {
  decide(charges: readonly Charge[]): Decision
  settle(reservation: Reservation, costUnits: number): void
}

/** Answers a worker's questions, in the process that has the counters. */
export class ServedLimiter {
  readonly #counters: EmbeddedCounters
  readonly #policies: NamedPolicies
  readonly #port: LimiterPort
  readonly #inFlight = createInFlightRecord()

  /** @param options.policies all policies that the worker may name; a request under any other policy is not decided */
  constructor(options: {
    readonly counters: EmbeddedCounters
    readonly policies: readonly Policy[]
    readonly port: LimiterPort
  }) {
    this.#counters = options.counters
    this.#policies = new NamedPolicies(options.policies)
    this.#port = options.port
    this.#port.listen((message) => {
      if (isQuestion(message)) this.#answer(message)
      else if (isSettlements(message)) for (const settlement of message.settled) this.#settle(settlement)
    })
  }

  /**
   * Call it before the worker gets a new table.
   *
   * @param revised the names of the policies that are new or changed, to which the worker adds the revision
   */
  usePolicies(policies: readonly Policy[], revised: readonly string[], revision: number): Steps<void> {
    return this.#policies.replace(policies, revised, revision, ({ name }) => this.#inFlight.has(name))
  }

  /** Call it when the worker has exited: its requests in flight have ended. */
  close(): void {
    for (const reservation of this.#inFlight.takeAll()) this.#counters.settle(reservation, 0)
  }

  #answer({ id, requests }: Question): void {
    const answers = requests.map((names) => answerRequest(names, this.#policies, this.#counters))
    for (const { reservations } of answers)
      for (const reservation of reservations)
        if (reservation && countsInFlight(reservation.charge.policy)) this.#inFlight.add(reservation)
    const message: Answer = { limiter: 'answer', id, reply: writeReply(answers) }
    try {
      this.#port.send(message)
    } catch {
      // The worker is gone, and so are the requests that waited for the answer.
    }
  }

  #settle([name, partitionKey, units, ticket, costUnits]: Settlement): void {
    const policy = this.#policies.find(name)
    if (!policy) return
    const reservation: Reservation = { charge: { policy, partitionKey }, units, isLocal: false, ticket }
    if (countsInFlight(policy) && !this.#inFlight.remove(reservation)) return
    this.#counters.settle(reservation, costUnits)
  }
}

type InFlightRecord = {
  add(reservation: Reservation): void
  /** Returns whether the reservation was in the record. */
  remove(reservation: Reservation): boolean
  takeAll(): Reservation[]
  /** Whether a request is in flight under the rule of this name, with its current quota or an earlier one. */
  has(name: Policy['name']): boolean
}

/** Records the requests of one worker that are in flight under concurrency limits. */
function createInFlightRecord(): InFlightRecord {
  const records = new Map<string, { readonly reservation: Reservation; count: number }>()
  const keyOf = ({ charge }: Reservation): string => `${nameOf(charge.policy)} ${charge.partitionKey}`
  return {
    add(reservation) {
      const known = records.get(keyOf(reservation))
      if (known) known.count += 1
      else records.set(keyOf(reservation), { reservation, count: 1 })
    },
    remove(reservation) {
      const known = records.get(keyOf(reservation))
      if (!known) return false
      known.count -= 1
      if (known.count === 0) records.delete(keyOf(reservation))
      return true
    },
    has: (name) => records.values().some(({ reservation }) => reservation.charge.policy.name === name),
    takeAll() {
      const all = [...records.values()]
      records.clear()
      return all.flatMap(({ reservation, count }) => Array.from({ length: count }, () => reservation))
    },
  }
}

/** Tells a worker that a client was reset, under the policy of this name or under all policies. */
export function sendReset(port: LimiterPort, policyName: string | undefined, partitionKey: string): void {
  const reset: ResetMessage = {
    limiter: 'reset',
    partitionKey,
    ...(policyName === undefined ? {} : { policyName }),
  }
  try {
    port.send(reset)
  } catch {
    // The worker is gone, and so is its cache.
  }
}

type RequestAnswer = {
  readonly values: readonly (number | string)[]
  /** By charge: the name of the client's plan; empty if the policy does not read stored plans, or if the client has no plan. */
  readonly plans: readonly string[]
  /** By charge. */
  readonly reservations: readonly (Reservation | undefined)[]
}

/** The reply that `RemoteCounters.ask` describes, with tickets and plans for all charges or for none. */
function writeReply(answers: readonly RequestAnswer[]): Answer['reply'] {
  const values = answers.flatMap((request) => request.values)
  const reservations = answers.flatMap((request) => request.reservations)
  const plans = answers.flatMap((request) => request.plans)
  const hasTickets = reservations.some((reservation) => reservation !== undefined)
  const hasPlans = plans.some((plan) => plan !== '')
  if (!hasTickets && !hasPlans) return values
  const tickets = reservations.map((reservation) => reservation?.ticket ?? 0)
  return [...values, 0, ...tickets, ...(hasPlans ? [plans] : [])]
}

function answerRequest(
  names: readonly string[],
  policies: NamedPolicies,
  counters: EmbeddedCounters,
): RequestAnswer {
  const charges: Charge[] = []
  for (let at = 0; at < names.length; at += 2) {
    const [name = '', units] = names[at]?.split(' ') ?? []
    const policy = policies.find(name)
    if (!policy) return failed(names, 'the primary process has no such policy')
    const charge = { policy, partitionKey: names[at + 1] ?? '' }
    charges.push(units === undefined ? charge : { ...charge, units: Number(units) })
  }
  const decision = counters.decide(charges)
  if (decision.outcome === 'unavailable') return failed(names, 'unavailable')
  return {
    values: decision.states.flatMap(({ exceeded, remaining, resetMs }) => [
      exceeded ? -1 - remaining : remaining,
      resetMs,
    ]),
    plans: decision.states.map(({ policy, isPlanUnknown }, at) =>
      charges[at] && readsStoredPlan(charges[at].policy)
        ? (policy.plan ?? (isPlanUnknown ? UNKNOWN_PLAN : ''))
        : '',
    ),
    reservations: decision.states.map(({ reservation }) => reservation),
  }
}

function failed(names: readonly string[], reason: string): RequestAnswer {
  return {
    values: names.map((_, index) => (index === 0 ? reason : 0)),
    plans: Array.from({ length: names.length / 2 }, () => ''),
    reservations: Array.from({ length: names.length / 2 }, () => undefined),
  }
}
