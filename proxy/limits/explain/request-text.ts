/** A request that an operator asks about. Its text is sent as UTF-8. */
export type AskedRequest = {
  readonly method: string
  readonly target: string
  readonly host?: string | undefined
  /** Name and value of each line, in order. */
  readonly headers: readonly (readonly [name: string, value: string])[]
}

/** Characters that cannot be in a request line or a header: they would end it. */
const lineEnd = /[\r\n\0]/
/** RFC 9110 section 5.6.2. */
const token = /^[!#$%&'*+.^_`|~\w-]+$/

/** Whether a text can be part of a line of a request. */
export function fitsInLine(text: string): boolean {
  return !lineEnd.test(text)
}

export function isHeaderName(text: string): boolean {
  return token.test(text)
}

/**
 * The HTTP/1.1 request line and headers, one character a byte. `Host`, if missing, is the one that an HTTP/1.0 request without one gets.
 *
 * @param defaultHost that of the backend
 */
export function writeHead({ method, target, host, headers }: AskedRequest, defaultHost: string): string {
  const lines = headers.map(([name, value]) => `${name}: ${value}`)
  const hasHost = headers.some(([name]) => name.toLowerCase() === 'host')
  const hostLine = hasHost && host === undefined ? [] : [`Host: ${host ?? defaultHost}`]
  const head = [`${method} ${target} HTTP/1.1`, ...hostLine, ...lines].join('\r\n')
  return Buffer.from(`${head}\r\n\r\n`).toString('latin1')
}
