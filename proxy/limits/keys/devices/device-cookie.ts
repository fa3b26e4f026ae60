import { readToken, TOKEN_LENGTH, type DeviceToken } from './device-token.ts'

/** Accounts that one browser keeps a token for, in one cookie. The oldest goes. */
const MAX_TOKENS = 8

/** Tokens that are read of all cookies with the name: more than fit into a head of the default `MAX_HEADER_SIZE`, 16 KiB. */
const MAX_READ = 256

/** A token, and how it is written. */
export type SentToken = DeviceToken & { readonly text: string }

/** Between tokens. No token has it. */
const separator = '.'

/**
 * The tokens in the device cookies of a request, at most `MAX_TOKENS` of each cookie with this name, in their order. A browser sends the
 * cookies of other hosts of its domain too, and those with a longer path before the gateway's.
 *
 * Only the usual spelling is read, as browsers send it: a token in any other would be nobody's.
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

/** The value of `Set-Cookie`. The cookie is for the host of the request alone, as it has no `Domain`. */
export function writeSetCookie(
  name: string,
  tokens: readonly string[],
  { maxAgeSeconds, isSecure }: { readonly maxAgeSeconds: number; readonly isSecure: boolean },
): string {
  const value = tokens.slice(0, MAX_TOKENS).join(separator)
  return `${name}=${value}; Max-Age=${maxAgeSeconds}; Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
}
