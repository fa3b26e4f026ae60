import { methodOverrideFields } from '../../../http/fields/header-roles.ts'
import { knownMethods } from '../../../request/request-head.ts'
import { methodField } from '../body/names/body-names.ts'
import type { KeySource } from '../part-values.ts'

const methodHeaders: ReadonlySet<string> = new Set(methodOverrideFields)

/**
 * Whether a backend may take another method than that of the request, such as `GET`: it then shows its form, with 200, whatever account
 * and password are sent along. A body that is not read may say so too.
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
  const others = values.filter(({ text, isExtra }) => !isExtra && text.toLowerCase() !== own)
  const mentions = body.countMentions(named)
  // To Yii, CakePHP and Symfony anything is a method, blanks and all, also an empty value, which is not found.
  if (mentions > 0) return others.length > 0 || values.length !== mentions
  // A field `method`, as names are compared by their letters: it may be any application's.
  const readings = others.flatMap((value) => body.readingsOf(value, methodField).usual)
  return readings.some((value) => knownMethods.has(value.toUpperCase()))
}

/** PHP makes it of `.method` and `[method` too, and drops blanks before a name. Not in `payment_method`, nor as the cookie `; method=`. */
const named = /(?<![a-z0-9])[_.[]method/g

function isOnly(sent: string | readonly string[] | undefined, method: string): boolean {
  return typeof sent === 'string' && sent.trim().toLowerCase() === method
}
