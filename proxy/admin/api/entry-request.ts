import { errors, type ErrorReply } from '../../../shared/error-replies.ts'
import { idOf, type ClientEntry, type NamedEntry } from '../../limits/clients/client-entry.ts'
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

/** The client and the rule that a request names. */
export type About = { readonly client: unknown; readonly policy?: string | undefined }

/** Returns the policy of the rule that a request names; undefined for all rules. */
export function policyOf(
  { policy: name }: Pick<About, 'policy'>,
  policies: readonly Policy[],
): Policy | undefined | ErrorReply {
  return name === undefined ? undefined : (policies.find((each) => each.name === name) ?? errors.noSuchPolicy)
}

/** Stores entries, one after the other. Returns the error of the first entry that was not, or may not have been, stored. */
export async function putEntries(
  store: EntryOperations,
  entries: readonly ClientEntry[],
  forMs: number,
): Promise<ErrorReply | undefined> {
  for (const entry of entries) {
    const failure = failureOf(await store.put(entry, forMs))
    if (failure) return failure
  }
  return undefined
}

/**
 * Removes entries, one after the other. Returns the entries that had been stored, or the error of the first entry that may not have been
 * removed.
 */
export async function removeEntries<Entry extends NamedEntry>(
  store: EntryOperations,
  entries: readonly Entry[],
): Promise<readonly Entry[] | ErrorReply> {
  const removed: Entry[] = []
  for (const entry of entries) {
    const outcome = await store.remove(idOf(entry))
    const failure = failureOf(outcome)
    if (failure) return failure
    if (outcome === 'done') removed.push(entry)
  }
  return removed
}

/** Returns the error for an entry that was not, or may not have been, changed. */
function failureOf(outcome: EntryOutcome): ErrorReply | undefined {
  if (outcome === 'full') return errors.tooManyEntries
  if (outcome === 'unavailable') return errors.storeAwayUnchanged
  return outcome === 'uncertain' ? errors.changeUncertain : undefined
}
