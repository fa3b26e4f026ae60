import type { AppliedBan, ClientEntries } from '../clients/client-entries.ts'
import type { Ban } from '../clients/client-entry.ts'
import { refusalOf, type Refusals } from '../refusal.ts'
import type { Charge } from '../limiter.ts'

/** What a running gateway knows of clients beside its settings. */
export type RunTimeState = {
  readonly entries: Pick<ClientEntries, 'findAddressBan' | 'findKeyBan' | 'list'>
  readonly refusals: Refusals
}

export type ExplainedBan = {
  /** The rule under which the client is banned; null: under all. */
  readonly policy: string | null
  readonly leftMs: number
  readonly by: Ban['by']
  readonly reason?: string
  readonly times?: number
}

type Banned = {
  readonly outcome: 'banned'
  readonly status: number
  readonly why: string
  readonly ban: ExplainedBan
}

/** The ban of an address under all rules. */
export function findAddressBan(runTime: RunTimeState | undefined, address: string): Banned | undefined {
  const ban = runTime?.entries.findAddressBan(address)
  return runTime && ban && describe(ban, [address], runTime)
}

/** The ban of a client by what its request counts by. */
export function findKeyBan(
  runTime: RunTimeState | undefined,
  charges: readonly Charge[],
): Banned | undefined {
  const ban = runTime?.entries.findKeyBan(charges)
  const keys = charges.map(({ partitionKey }) => partitionKey)
  return runTime && ban && describe(ban, keys, runTime)
}

function describe(
  { policy, leftMs }: AppliedBan,
  keys: readonly string[],
  { entries, refusals }: RunTimeState,
): Banned {
  const found = entries
    .list('ban')
    .find(({ entry }) => entry.policy === policy?.name && keys.includes(entry.partitionKey))
  const { by = 'operator', reason, times } = found?.entry ?? {}
  return {
    outcome: 'banned',
    status: refusalOf(refusals, policy)?.status ?? 429,
    why: `the client is banned${policy ? ` under ${policy.name}` : ''}`,
    ban: {
      policy: policy?.name ?? null,
      leftMs,
      by,
      ...(reason !== undefined && { reason }),
      ...(times !== undefined && { times }),
    },
  }
}
