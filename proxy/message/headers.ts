import type { IncomingHttpHeaders } from 'node:http'

/** Without what plain objects inherit: a client may send a header of any name. */
const Headers = function () {} as unknown as new () => Record<string, string | string[] | undefined>
Headers.prototype = Object.create(null)

/**
 * Header fields by name in lower case, all lines of one in one value, as Node reads them with `joinDuplicateHeaders`.
 *
 * @param fields name, value, name, value…
 */
export function headersOf(fields: readonly string[]): IncomingHttpHeaders {
  const headers = new Headers()
  for (let i = 0; i < fields.length; i += 2) {
    const name = (fields[i] ?? '').toLowerCase()
    const value = fields[i + 1] ?? ''
    const before = headers[name]
    if (name === 'set-cookie') headers[name] = before === undefined ? [value] : [...before, value]
    else if (before === undefined) headers[name] = value
    else headers[name] = `${before as string}${name === 'cookie' ? '; ' : ', '}${value}`
  }
  return headers as IncomingHttpHeaders
}
