/** One way to request a path, right or wrong. Strings have one character per byte. */
export type Spelling = {
  readonly method: string
  readonly target: string
  /** Headers besides `Host` and `Content-Length`. */
  readonly headers: readonly (readonly [name: string, value: string])[]
}

export function toBytes({ method, target, headers }: Spelling): string {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return `${method} ${target} HTTP/1.1\r\nHost: localhost\r\n${lines}Content-Length: 0\r\n\r\n`
}

/** Whether some server may read it as two requests, or as part of one, so that it needs a connection of its own. */
export function isRisky({ method, target, headers }: Spelling): boolean {
  return (
    method === 'HEAD' || !/^[\x21-\x7e]+$/.test(target) || headers.some(([name]) => !/^[\w-]+$/.test(name))
  )
}

/** Describes a spelling in readable form: the request line and the added headers, with bytes outside visible ASCII as `\x..`. */
export function describe({ method, target, headers }: Spelling): string {
  const text = [`${method} ${target}`, ...headers.map(([name, value]) => `${name}: ${value}`)].join(' | ')
  return text.replace(/[^\x20-\x7e]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`)
}
