import { methodOverrideFields } from '../../../http/fields/header-roles.ts'
import { knownMethods } from '../../../request/request-head.ts'
import { methodField } from '../body/names/body-names.ts'
import type { KeySource } from '../part-values.ts'

const methodHeaders: ReadonlySet<string> = new Set(methodOverrideFields)

/**
 * Whether a backend may take another method than that of the request, such as `GET`: it then shows its form, with 200, whatever account and
 * password are sent along. The body may have one that is not read.
 */
export function mayOverrideMethod(
  { headers, body }: Pick<KeySource, 'headers' | 'body'>,
  method: string,
): boolean {
  const own = method.toLowerCase()
  for (const name in headers)
    if (methodHeaders.has(name.replaceAll('_', '-')) && !isOnly(headers[name], own)) return true
  if (!body || body.isPartlyRead) return true
  // In the query, too.
  const { values, isCut, unread } = body.find(methodField)
  if (isCut || unread === 'memory') return true
  const others = values
    .flatMap((value) => body.readingsOf(value, methodField).usual)
    .filter((value) => value !== own)
  // Names are compared by their letters. Symfony takes any word, but of `_method` only; a field `method` may be any application's.
  return (
    others.some((value) => knownMethods.has(value.toUpperCase())) ||
    (others.length > 0 && body.mentions(named))
  )
}

/** PHP makes it of `.method` and `[method` too, and drops blanks before a name. Not in `payment_method`, nor as the cookie `; method=`. */
const named = /(?:^|[^a-z0-9])[_.[]method/

function isOnly(sent: string | readonly string[] | undefined, method: string): boolean {
  return typeof sent === 'string' && sent.trim().toLowerCase() === method
}
