import { findCookie } from './cookie-values.ts'
import { nameTest, type NameTest } from './value-names.ts'

/** Keeps the gateway's cookies between the gateway and its clients. */
export type HiddenCookies = {
  /** Returns the cookies of a request without hidden ones. */
  readonly withoutCookies: (header: string) => string
  /** Returns the headers of a response without those that set hidden cookies: name, value, name, value…; names in lower case. */
  readonly withoutSetCookies: (fields: readonly string[]) => readonly string[]
}

/**
 * Hides cookies with these names in every spelling that some backend reads, and leaves other cookies as sent, byte for byte.
 *
 * A hidden cookie may be inside the value of another one: a backend that separates cookies by commas finds it in `a=b, name=x`. It is
 * removed together with the text after it.
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
  // Not a pattern that ends with `$`, which would be tried at each blank in the value before.
  while (end > 0 && separators.test(pair[end - 1] ?? '')) end--
  return end === 0 ? undefined : pair.slice(0, end)
}

const separators = /^[,&\s]$/

/** Returns the name in a `Set-Cookie`. Browsers send a cookie without a name, such as `Set-Cookie: =a=b`, as its bare text: `a=b`. */
function nameInSetCookie(value: string): string {
  const [pair = ''] = value.split(';', 1)
  const [, name = ''] = /^[\s=]*([^=]*)/.exec(pair) ?? []
  return name.trim()
}
