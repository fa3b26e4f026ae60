/** What a text is compared with. `is` in the writing of the table; `prefix` and `contains` are never empty. */
export type TextTest =
  | { readonly kind: 'absent' | 'present' }
  | { readonly kind: 'is' | 'prefix' | 'contains'; readonly text: string }

/**
 * A condition on a request, which holds if any of its tests or entries does:
 *
 * - `header`, whose name is lower-case, `cookie`, `query`: what the client sent by that name
 * - `jwt`: a claim of the request's token, if that is verified
 * - `userAgent`: the header `User-Agent`, letter case ignored
 * - `host`: the host that the request is for, as `hosts` of a rule
 * - `country`, `asn`: of the client's address, such as `DE` and `AS64496`, or `unknown`
 * - `ip`: the address of the client, which one of the entries has
 */
export type Condition<ListEntry> =
  | {
      readonly kind: 'header' | 'cookie' | 'query' | 'jwt'
      readonly name: string
      readonly anyOf: readonly TextTest[]
    }
  | { readonly kind: 'userAgent'; readonly anyOf: readonly TextTest[] }
  | { readonly kind: 'host'; readonly anyOf: readonly string[] }
  | { readonly kind: 'country' | 'asn'; readonly anyOf: readonly string[] }
  | { readonly kind: 'ip'; readonly anyOf: readonly ListEntry[] }
