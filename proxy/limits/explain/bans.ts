import type { AppliedBan, ClientEntries } from '../clients/client-entries.ts'
import type { Ban } from '../clients/client-entry.ts'
import type { Charge } from '../limiter.ts'
import type { DecideOptions, RequestContext } from '../verdict.ts'
import { refusalOf, type Refusals } from '../replies.ts'

/** The state of clients in a running gateway, in addition to its settings. */
export type RunTimeState = {
  readonly entries: DecideOptions['entries'] & Pick<ClientEntries, 'list'>
  readonly refusals: Refusals
  /** Whether the waiting queue has room for a request. */
  readonly hasPlace: (charge: Charge) => boolean
}

export type ExplainedBan = {
  /** The rule under which the client is banned; null: under all rules. */
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

/** Explains a client's ban, found by its address or, if they are known, by the keys of its request. */
export function explainBan(
  { policy, leftMs }: AppliedBan,
  { clientAddress, charges }: RequestContext,
  { entries, refusals }: RunTimeState,
): Banned {
  const keys = charges.length === 0 ? [clientAddress.prefix] : charges.map((charge) => charge.partitionKey)
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
