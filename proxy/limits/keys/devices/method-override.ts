import { methodOverrideFields } from '../../../http/fields/header-roles.ts'
import { knownMethods } from '../../../request/request-head.ts'
import { methodField } from '../body/names/body-names.ts'
import type { KeySource } from '../part-values.ts'

const methodHeaders: ReadonlySet<string> = new Set(methodOverrideFields)

/**
 * Whether a backend may apply another method than the request's, such as `GET`. It would then show its form, with 200, regardless of the
 * account and password in the request. A body that is not fully read may also contain an override.
 */
export function mayOverrideMethod(
  { headers, body }: Pick<KeySource, 'headers' | 'body'>,
  method: string,
): boolean {
  const own = method.toLowerCase()
  for (const name in headers)
    if (methodHeaders.has(name.replaceAll('_', '-')) && !isOnly(headers[name], own)) return true
  if (!body || body.isPartlyRead) return true
  // Also finds the field in the query.
  const { values, isCut, unread } = body.find(methodField)
  if (isCut || unread === 'memory') return true
  const usual = values.filter(({ isExtra }) => !isExtra)
  const others = usual.filter(({ text }) => text.toLowerCase() !== own)
  const mentions = body.countMentions(named)
  // Yii, CakePHP and Symfony accept any value as a method, including blank ones and the empty value, which `find` does not return. Instead
  // of an empty value, it may have returned that of another field whose name has the same letters.
  if (mentions > 0)
    return others.length > 0 || usual.length !== mentions || body.countMentions(withValue) !== mentions
  // A field `method`, because names are compared by their letters. Any application may have such a field.
  const readings = others.flatMap((value) => body.readingsOf(value, methodField).usual)
  return readings.some((value) => knownMethods.has(value.toUpperCase()))
}

/**
 * Matches `_method`, and `.method` and `[method`, which PHP turns into it; PHP also drops blanks before a name. Matches neither
 * `payment_method` nor the cookie `; method=`.
 */
const named = /(?<![a-z0-9])[_.[]method/g
/** Matches these names if a value follows, in a form, in JSON or in a part of a multipart body. */
const withValue = /(?<![a-z0-9])[_.[]method(?:\]?=|"\s*:\s*"|"\r?\n\r?\n)[a-z]/g

function isOnly(sent: string | readonly string[] | undefined, method: string): boolean {
  return typeof sent === 'string' && sent.trim().toLowerCase() === method
}
