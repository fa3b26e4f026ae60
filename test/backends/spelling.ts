/** One way to ask for a path, right or wrong. Strings have one character a byte. */
export type Spelling = {
  readonly method: string
  readonly target: string
  /** Besides `Host` and `Content-Length`. */
  readonly headers: readonly (readonly [name: string, value: string])[]
}

export function toBytes({ method, target, headers }: Spelling): string {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return `${method} ${target} HTTP/1.1\r\nHost: localhost\r\n${lines}Content-Length: 0\r\n\r\n`
}

/** Some server may take it for two requests, or for a part of one: nothing else is to go over its connection. */
export function isRisky({ method, target, headers }: Spelling): boolean {
  return (
    method === 'HEAD' || !/^[\x21-\x7e]+$/.test(target) || headers.some(([name]) => !/^[\w-]+$/.test(name))
  )
}

/** Describes a spelling for people: the request line and the added headers, with bytes outside visible ASCII as `\x..`. */
export function describe({ method, target, headers }: Spelling): string {
  const text = [`${method} ${target}`, ...headers.map(([name, value]) => `${name}: ${value}`)].join(' | ')
  return text.replace(/[^\x20-\x7e]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`)
}
