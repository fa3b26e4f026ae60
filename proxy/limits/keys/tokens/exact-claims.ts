/** The members of a payload, by name. */
export type Payload = Readonly<Record<string, unknown>>

/**
 * Returns the claims of a token under their exact names. V8's `JSON.parse` misreads an escaped name, such as `https:\/\/app.example\/plan`,
 * if it has parsed before an object with the same preceding names, followed by a name that consists of the characters of the escaped one
 * (https://github.com/nodejs/node/issues/63785). Any client can send such an object, and customers whose issuer escapes names would lose
 * their plans.
 *
 * @param signed the header and payload of the token
 * @param parsed the payload as parsed by `JSON.parse`
 */
export function exactClaims(signed: string, parsed: Payload): Payload {
  const json = Buffer.from(signed.slice(signed.indexOf('.') + 1), 'base64url').toString()
  return json.includes('\\') ? (JSON.parse(withoutEscapes(json)) as Payload) : parsed
}

/** Replaces the escapes in valid JSON with their characters, except for quotes, backslashes, controls and surrogates. */
function withoutEscapes(json: string): string {
  return json.replace(/\\(?:u([\da-f]{4})|.)/gi, (escape, hex?: string) => {
    if (hex === undefined) return escape === '\\/' ? '/' : escape
    const character = String.fromCharCode(Number.parseInt(hex, 16))
    return /[\0-\x1f"\\\ud800-\udfff]/.test(character) ? escape : character
  })
}
