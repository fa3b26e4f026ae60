import { methodOverrideFields } from '../../../http/fields/header-roles.ts'
import { knownMethods } from '../../../request/request-head.ts'
import { methodField } from '../body/names/body-names.ts'
import type { KeySource } from '../part-values.ts'

const methodHeaders: ReadonlySet<string> = new Set(methodOverrideFields)

/**
 * Whether a backend may take another method than that of the request, such as `GET`: it then shows its form, with 200, whatever account and
 * password are sent along. The body may have one that is not read.
 */
export function mayOverrideMethod({ headers, body }: KeySource, method: string): boolean {
  const own = method.toLowerCase()
  for (const name in headers)
    if (methodHeaders.has(name.replaceAll('_', '-')) && !isOnly(headers[name], own)) return true
  if (!body || body.isPartlyRead) return true
  // In the query, too.
  const { values, isCut, unread } = body.find(methodField)
  const isOther = (value: string): boolean => value !== own && knownMethods.has(value.toUpperCase())
  return (
    isCut || unread === 'memory' || values.some(({ text }) => body.valuesOf(text, methodField).some(isOther))
  )
}

function isOnly(sent: string | readonly string[] | undefined, method: string): boolean {
  return typeof sent === 'string' && sent.trim().toLowerCase() === method
}
