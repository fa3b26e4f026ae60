import { findCookie } from './cookie-values.ts'
import { nameTest, type NameTest } from './value-names.ts'

/** Keeps cookies of the gateway between it and its clients. */
export type HiddenCookies = {
  /** The cookies of a request without them. */
  readonly withoutCookies: (header: string) => string
  /** The headers of a response without those that would set them: name, value, name, value…; names in lower case. */
  readonly withoutSetCookies: (fields: readonly string[]) => readonly string[]
}

/**
 * Hides cookies with these names in each spelling that some backend reads, and leaves others as they were sent, byte for byte.
 *
 * A cookie within the value of another one, as in `a=b, name=x` to a backend that separates cookies by commas, goes with what
 * is after it.
 */
export function hideCookies(names: readonly string[]): HiddenCookies {
  const tests = names.map(nameTest)
  const matchesName: NameTest = (sent) => tests.some((test) => test(sent))
  return {
    withoutCookies(header) {
      const pairs = header.split(';')
      const kept = pairs.flatMap((pair) => withoutHidden(pair, matchesName) ?? [])
      return kept.length === pairs.length && kept.every((pair, i) => pair === pairs[i])
        ? header
        : kept.join(';').trimStart()
    },
    withoutSetCookies(fields) {
      const isHidden = (i: number): boolean =>
        fields[i] === 'set-cookie' && matchesName(nameInSetCookie(fields[i + 1] ?? ''))
      if (!fields.some((_, i) => i % 2 === 0 && isHidden(i))) return fields
      return fields.filter((_, i) => !isHidden(i - (i % 2)))
    },
  }
}

/** Returns undefined if nothing is left. */
function withoutHidden(pair: string, matchesName: NameTest): string | undefined {
  const start = findCookie(pair, matchesName)
  if (start === undefined) return pair
  let end = start
  // A pattern that ends with `$` would be tried from each of the blanks in the value before it.
  while (end > 0 && separators.test(pair[end - 1] ?? '')) end--
  return end === 0 ? undefined : pair.slice(0, end)
}

const separators = /^[,&\s]$/

/** The name in a `Set-Cookie`. Browsers send a cookie without a name, as in `Set-Cookie: =a=b`, as its text alone: `a=b`. */
function nameInSetCookie(value: string): string {
  const [pair = ''] = value.split(';', 1)
  const [, name = ''] = /^[\s=]*([^=]*)/.exec(pair) ?? []
  return name.trim()
}
