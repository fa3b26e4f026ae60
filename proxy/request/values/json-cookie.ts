const begins = /^"?(?:j|%6a)(?::|%3a)/i

/**
 * Returns the text of a JSON cookie, such as `j:"a"`, which Express's cookie-parser reads as `a`.
 *
 * @param sent one character per byte
 * @returns one character per byte; undefined for any other cookie
 */
export function jsonCookieText(sent: string): string | undefined {
  if (!begins.test(sent)) return undefined
  const bare = sent.startsWith('"') ? sent.slice(1, -1) : sent
  const bytes = bare.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  if (!bytes.startsWith('j:')) return undefined
  try {
    const text = textOf(JSON.parse(Buffer.from(bytes.slice(2), 'latin1').toString()))
    return text === undefined ? undefined : Buffer.from(text).toString('latin1')
  } catch {
    return undefined
  }
}

/** Returns undefined for falsy values, which cookie-parser leaves unparsed. An array of one text becomes that text, as in some backends. */
function textOf(value: unknown): string | undefined {
  if (Array.isArray(value)) return joined(value)
  if (typeof value === 'number') return value === 0 ? undefined : String(value)
  if (typeof value === 'string') return value
  return value === true ? 'true' : undefined
}

/** Returns what `join` returns, which searches all arrays around an array and so takes quadratic time if they are nested. */
function joined(value: readonly unknown[]): string {
  const parts: string[] = []
  const left: unknown[] = [value]
  while (left.length > 0) {
    const next = left.pop()
    if (!Array.isArray(next)) parts.push([next].join())
    else if (next.length === 0) parts.push('')
    else left.push(...(next as unknown[]))
  }
  return parts.reverse().join()
}
