/** The kinds of parts without a name, as tables of limits and operators write them. */
export const plainParts = ['ip', 'country', 'asn', 'host', 'global'] as const

/**
 * - `ip`: the client's address, or its network of the length `ipv6Prefix`
 * - `network`: the network of the client's address, by the prefix lengths for IPv4 and IPv6
 * - `country`, `asn`: the country of the client's address, and its autonomous system; `unknown` for addresses that are not in the file
 * - `host`: the host of the request
 * - `global`: all clients together; never with other parts
 * - `header`: the value of a header, whose name is lower-case
 * - `cookie`, `query`: the value of a cookie or of a query parameter, whose name is as written
 * - `jwt`: a claim of the request's token, if that is verified
 * - `body`: a member or a field of the request's body; `path` are the names that lead to it, `name` these joined by dots
 * - `path`: the segment in place of a `:name` of the paths in `match`; `patterns` has all these paths
 *
 * `isNumber`: the backend reads the value as a whole number and ignores text after it.
 */
export type SinglePart =
  | { readonly kind: (typeof plainParts)[number] }
  | ({ readonly kind: 'network' } & PrefixLengths)
  | { readonly kind: 'jwt'; readonly name: string }
  | { readonly kind: 'header' | 'cookie' | 'query'; readonly name: string; readonly isNumber?: true }
  | {
      readonly kind: 'body'
      readonly name: string
      readonly path: readonly string[]
      readonly isNumber?: true
    }
  | {
      readonly kind: 'path'
      readonly name: string
      readonly patterns: readonly string[]
      readonly isNumber?: true
    }

/** Leading bits of an address that make its network. */
export type PrefixLengths = { readonly ipv4: number; readonly ipv6: number }

/** A part of a key, or `first`: each of several that the client has sent, or else the one that every request has. `of` has two or more. */
export type PartitionPart = SinglePart | { readonly kind: 'first'; readonly of: readonly SinglePart[] }

/** A part of a rule's key in the syntax of the limits table. */
export function partName(part: SinglePart): string {
  if (part.kind === 'network') return `ip/${part.ipv4}/${part.ipv6}`
  return 'name' in part ? `${part.kind}:${part.name}` : part.kind
}

/** Returns the single parts of a key. */
export function singleParts(partition: readonly PartitionPart[]): readonly SinglePart[] {
  return partition.flatMap((part) => (part.kind === 'first' ? part.of : [part]))
}

/** Whether a policy reads the body of requests: for its key, or for a method in it that makes a sign-in another request. */
export function readsBody(policy: {
  readonly partition: readonly PartitionPart[]
  readonly device?: object | undefined
}): boolean {
  return policy.device !== undefined || hasBodyKey(policy)
}

/** Whether a policy counts by what the body of requests says. */
export function hasBodyKey({ partition }: { readonly partition: readonly PartitionPart[] }): boolean {
  for (const part of partition)
    if (part.kind === 'body' || (part.kind === 'first' && part.of.some(({ kind }) => kind === 'body')))
      return true
  return false
}
