/** The text that a value is compared with. `is` in the spelling of the table; `prefix` and `contains` are never empty. */
export type TextTest =
  | { readonly kind: 'absent' | 'present' }
  | { readonly kind: 'is' | 'prefix' | 'contains'; readonly text: string }

/**
 * A condition on a request, which holds if any of its tests or entries does:
 * - `header`, with its lower-case name, `cookie`, `query`: the values that the client sent by that name
 * - `jwt`: a claim of the request's token, if that is verified
 * - `userAgent`: the header `User-Agent`, letter case ignored
 * - `host`: the host of the request, as in `hosts` of a rule
 * - `country`, `asn`: those of the client's address, such as `DE` and `AS64496`, or `unknown`
 * - `ip`: the client's address, which is in one of the entries
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
