import { namedBodyValues } from '../../limits/keys/named-body-values.ts'
import { partitionKeysOf } from '../../limits/keys/partition-key.ts'
import type { ListEntry, Policy } from '../../policy.ts'
import { partName } from '../../policy/partition.ts'

/** An account that an override names: a part such as `body:email`, and its value. */
type AccountEntry = { readonly kind: 'account'; readonly part: string; readonly value: string }

export type OverrideClient = ListEntry | AccountEntry

type Key = Pick<Policy, 'partition'>

/**
 * Splits the clients of an override into addresses and headers, and accounts. Accounts are returned as their partition keys under the rule.
 */
export function clientsUnder(
  policy: Policy,
  written: readonly OverrideClient[],
): { readonly clients: readonly ListEntry[]; readonly accounts?: readonly string[] } {
  const clients = written.filter((client) => client.kind !== 'account')
  const accounts = written.flatMap((client) => (client.kind === 'account' ? keysOf(policy, client) : []))
  return { clients, ...(accounts.length > 0 && { accounts }) }
}

/** Returns why the accounts of an override cannot apply under the key of its rule; undefined if they can. */
export function mistakeOfAccounts(
  key: Key['partition'],
  overrides: readonly { readonly clients?: readonly OverrideClient[] | undefined }[],
): string | undefined {
  const accounts = overrides.flatMap(({ clients = [] }) => clients.filter((each) => each.kind === 'account'))
  for (const account of accounts) {
    const parts = partsOf(key).map(partName)
    if (!parts.includes(account.part)) {
      const needed = parts.filter((part) => part.startsWith('body:')).join(' or ')
      const what =
        needed === ''
          ? 'ip or header:NAME, as the key has no body:NAME alone'
          : `a part of the key: ${needed}`
      return `got ${account.part} as a client, needs ${what}`
    }
    if (keysOf({ partition: key }, account).length === 0)
      return `got a value of ${account.part} without a visible character, needs the name of an account`
  }
  return undefined
}

function partsOf([only, ...others]: Key['partition']) {
  if (!only || others.length > 0) return []
  return only.kind === 'first' ? only.of : [only]
}

/** Returns every partition key under which a request that names the account could count. */
function keysOf({ partition }: Key, { part: name, value }: AccountEntry): readonly string[] {
  const part = partsOf(partition).find((each) => partName(each) === name)
  if (part?.kind !== 'body') return []
  return namedBodyValues(part, value).flatMap((one) =>
    partitionKeysOf({ partition }, (each) => (each === part ? [one] : [])),
  )
}
