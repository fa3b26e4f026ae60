/** The kinds of parts without a name, as written in limits tables and by operators. */
export const plainParts = ['ip', 'country', 'asn', 'host', 'global'] as const

/**
 * - `ip`: the client's address, or its network of the length `ipv6Prefix`
 * - `network`: the network of the client's address, with these prefix lengths for IPv4 and IPv6
 * - `country`, `asn`: the country and the autonomous system of the client's address; `unknown` for addresses that are not in the file
 * - `host`: the host of the request
 * - `global`: all clients together; never with other parts
 * - `header`: the value of a header, whose name is in lower case
 * - `cookie`, `query`: the value of a cookie or of a query parameter, whose name is as written
 * - `jwt`: a claim of the request's token, if that is verified
 * - `body`: a member or a field of the request's body; `path` has the names that lead to it, `name` has them joined by dots
 * - `path`: the segment that takes the place of `:name` in the paths of `match`; `patterns` has all these paths
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

/** The number of leading bits that form the network of an address. */
export type PrefixLengths = { readonly ipv4: number; readonly ipv6: number }

/**
 * A part of a key, or `first`: each of its parts that the client has sent, otherwise the one that every request has. `of` has two or more.
 */
export type PartitionPart = SinglePart | { readonly kind: 'first'; readonly of: readonly SinglePart[] }

/** Writes a part of a rule's key in the syntax of the limits table. */
export function partName(part: SinglePart): string {
  if (part.kind === 'network') return `ip/${part.ipv4}/${part.ipv6}`
  return 'name' in part ? `${part.kind}:${part.name}` : part.kind
}

/** Returns the single parts of a key. */
export function singleParts(partition: readonly PartitionPart[]): readonly SinglePart[] {
  return partition.flatMap((part) => (part.kind === 'first' ? part.of : [part]))
}

/** Whether a policy reads request bodies: for its key, or for a method override in the body that changes what a sign-in request does. */
export function readsBody(policy: {
  readonly partition: readonly PartitionPart[]
  readonly device?: object | undefined
}): boolean {
  return policy.device !== undefined || hasBodyKey(policy)
}

/** Whether a policy's key has a part in the request body. */
export function hasBodyKey({ partition }: { readonly partition: readonly PartitionPart[] }): boolean {
  for (const part of partition)
    if (part.kind === 'body' || (part.kind === 'first' && part.of.some(({ kind }) => kind === 'body')))
      return true
  return false
}
