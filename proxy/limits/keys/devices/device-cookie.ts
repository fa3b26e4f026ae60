import { readToken, TOKEN_LENGTH, type DeviceToken } from './device-token.ts'

/** Maximum number of accounts for which one browser keeps a token, in one cookie. The oldest token is dropped. */
const MAX_TOKENS = 8

/** Maximum number of tokens to read from all cookies with the name: more than fit into a head of the default `MAX_HEADER_SIZE`, 16 KiB. */
const MAX_READ = 256

/** A token and its text. */
export type SentToken = DeviceToken & { readonly text: string }

/** Separates tokens, which never contain it. */
const separator = '.'

/**
 * Returns the tokens in the device cookies of a request, in order, at most `MAX_TOKENS` of each cookie with this name. A browser also sends
 * cookies that other hosts of the domain have set, and sends cookies with a longer path before the gateway's.
 *
 * Only reads the usual spelling, as sent by browsers. A token in any other spelling is not recognized.
 *
 * @param header all cookies, joined with `; `
 */
export function readTokens(header: string, name: string): readonly SentToken[] {
  const found: SentToken[] = []
  const start = `${name}=`
  for (let at = 0; at < header.length && found.length < MAX_READ;) {
    const end = header.indexOf(';', at)
    const pair = header.slice(at, end === -1 ? header.length : end).trim()
    at = end === -1 ? header.length : end + 1
    if (!pair.startsWith(start)) continue
    const value = pair.slice(start.length, start.length + MAX_TOKENS * (TOKEN_LENGTH + separator.length))
    for (const text of value.split(separator, MAX_TOKENS)) {
      const token = readToken(text)
      if (token) found.push({ ...token, text })
    }
  }
  return found
}

/** Writes the value of `Set-Cookie`. Without `Domain`, the cookie is for the host of the request alone. */
export function writeSetCookie(
  name: string,
  tokens: readonly string[],
  { maxAgeSeconds, isSecure }: { readonly maxAgeSeconds: number; readonly isSecure: boolean },
): string {
  const value = tokens.slice(0, MAX_TOKENS).join(separator)
  return `${name}=${value}; Max-Age=${maxAgeSeconds}; Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
}
