import { text } from '../shared/settings/kinds.ts'
import type { Kind } from '../shared/settings/table.ts'

/** The left part of an entry of `ports` in a compose file: `8080`, `127.0.0.1:8080`, `[::1]:8080`, `8080-8090`. */
const written = /^(?:(.*):)?(\d{1,5})(?:-\d{1,5})?$/
const everyAddress: ReadonlySet<string> = new Set(['', '0.0.0.0', '::', '127.0.0.1', '::1'])

const asWritten = text('PORT or ADDRESS:PORT', () => true)

/**
 * The base URL of the address that compose publishes, for clients on the same machine. Undefined if the value cannot be converted to a URL:
 * compose itself refuses invalid values, and the service must start with them.
 */
export const publishedAddress: Kind<string | undefined> = {
  ...asWritten,
  schema: asWritten.schema.transform(urlOf),
}

function urlOf(published: string): string | undefined {
  const [, address = '', port] = written.exec(published.trim()) ?? []
  if (port === undefined) return undefined
  const host = address.replace(/^\[(.*)\]$/, '$1')
  const name = everyAddress.has(host) ? 'localhost' : host.includes(':') ? `[${host}]` : host
  const url = `http://${name}:${Number(port)}`
  return URL.canParse(url) ? url : undefined
}
