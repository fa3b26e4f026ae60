import type { IncomingHttpHeaders } from 'node:http'

/** Creates objects without a prototype: a client may send a header of any name, such as `constructor`. */
const Headers = function () {} as unknown as new () => Record<string, string | string[] | undefined>
Headers.prototype = Object.create(null) as object

/**
 * Header fields by name, repeated lines joined into one value, as Node does with `joinDuplicateHeaders`.
 *
 * @param fields name, value, name, value… with names in lower case
 */
export function headersOf(fields: readonly string[]): IncomingHttpHeaders {
  const headers = new Headers()
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? ''
    const value = fields[i + 1] ?? ''
    if (isDigit(name.charCodeAt(0))) makeSparse(headers)
    const before = headers[name]
    if (Array.isArray(before)) before.push(value)
    else if (name === 'set-cookie') headers[name] = [value]
    else if (before === undefined) headers[name] = value
    else headers[name] = `${before}${name === 'cookie' ? '; ' : ', '}${value}`
  }
  return headers
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

/** V8 treats a numeric name as an array index: for `1000` it would allocate the thousand elements before it, 12 KB. */
function makeSparse(headers: Record<string, unknown>): void {
  if (headers[MAX_INDEX] !== undefined) return
  headers[MAX_INDEX] = undefined
  Reflect.deleteProperty(headers, MAX_INDEX)
}

const MAX_INDEX = String(2 ** 32 - 2)

/**
 * The values of all lines of a field.
 *
 * @param fields name, value, name, value… with names in lower case
 */
export function linesOf(fields: readonly string[], name: string): string[] {
  return fields.filter((_, i) => i % 2 === 1 && fields[i - 1] === name)
}
