import { methodOverrideFields } from '../../../http/fields/header-roles.ts'
import { methodField } from '../body/names/body-names.ts'
import type { KeySource } from '../part-values.ts'
import { queryValues } from '../../../request/values/query-values.ts'

const methodHeaders: ReadonlySet<string> = new Set(methodOverrideFields)
/** Methods that may be answered as a sign-in that worked is, without a look at the password. */
const otherMethods: ReadonlySet<string> = new Set(
  'get head options query put patch delete link unlink trace connect'.split(' '),
)

/**
 * Whether a backend may take another method than that of the request, such as `GET`: it then shows its form, with 200, whatever account and
 * password are sent along.
 */
export function mayOverrideMethod({ headers, target, body }: KeySource): boolean {
  for (const name in headers)
    if (methodHeaders.has(name.replaceAll('_', '-')) && !isPost(headers[name])) return true
  if (body) {
    const { values, isCut } = body.find(methodField)
    return isCut || values.some(({ text }) => body.valuesOf(text, methodField).some(isOther))
  }
  const { forwardTarget } = target
  return forwardTarget.includes('?') && queryValues(forwardTarget, '_method', MAX_VALUES).some(isOther)
}

const MAX_VALUES = 8

function isPost(value: string | readonly string[] | undefined): boolean {
  return typeof value === 'string' && value.trim().toLowerCase() === 'post'
}

function isOther(value: string): boolean {
  return otherMethods.has(value)
}
