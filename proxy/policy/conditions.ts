/** A test of a value. The text of `is` is spelled as in the table; `prefix` and `contains` have a text that is never empty. */
export type TextTest =
  | { readonly kind: 'absent' | 'present' }
  | { readonly kind: 'is' | 'prefix' | 'contains'; readonly text: string }

/**
 * A condition on a request, which holds if any of its tests or entries does:
 * - `header`, whose name is in lower case, `cookie`, `query`: the values that the client sent under that name
 * - `jwt`: a claim of the request's token, if that is verified
 * - `userAgent`: the `User-Agent` header, ignoring letter case
 * - `host`: the host of the request, as in `hosts` of a rule
 * - `country`, `asn`: the country and the autonomous system of the client's address, such as `DE` and `AS64496`, or `unknown`
 * - `ip`: the client's address, which must be in one of the entries
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
