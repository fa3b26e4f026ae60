import { errors, type ErrorReply } from '../../../shared/error-replies.ts'
import type { EntryOperations } from '../../limits/clients/client-table.ts'
import type { EntryOutcome } from '../../limits/clients/entry-store.ts'
import type { Policy } from '../../policy.ts'
import type { AddressReader } from '../../request/addresses/client-address.ts'

export type EntryRoutesOptions = {
  /** The policies of the current rules. */
  readonly policies: readonly Policy[]
  /** How clients are counted by their addresses. */
  readonly addresses: AddressReader
  readonly entries: EntryOperations
}

/** The client, and the rule, that a request is about. */
export type About = { readonly client: unknown; readonly policy?: string | undefined }

/** Returns the policy of the rule that a request names; undefined for all rules. */
export function policyOf(
  { policy: name }: Pick<About, 'policy'>,
  policies: readonly Policy[],
): Policy | undefined | ErrorReply {
  return name === undefined ? undefined : (policies.find((each) => each.name === name) ?? errors.noSuchPolicy)
}

export function isError(value: unknown): value is ErrorReply {
  return typeof value === 'object' && value !== null && 'reason' in value && 'body' in value
}

/** The error for an entry that was not changed, or may not have been. */
export function failureOf(outcome: EntryOutcome): ErrorReply | undefined {
  if (outcome === 'full') return errors.tooManyEntries
  if (outcome === 'unavailable') return errors.storeAwayUnchanged
  return outcome === 'uncertain' ? errors.changeUncertain : undefined
}
