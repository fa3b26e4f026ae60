/** The members of a payload, by name. */
export type Payload = Readonly<Record<string, unknown>>

/**
 * The claims of a token, each under its own name. V8's `JSON.parse` takes an escaped name, such as `https:\/\/app.example\/plan`, for
 * another one if it has read an object before that has the same names before it, and then one that consists of the characters of the
 * escaped one (https://github.com/nodejs/node/issues/63785). Any client can send such an object, and the customers whose issuer escapes
 * names would lose their plans.
 *
 * @param signed header and payload of the token
 * @param parsed the payload as it was parsed
 */
export function exactClaims(signed: string, parsed: Payload): Payload {
  const json = Buffer.from(signed.slice(signed.indexOf('.') + 1), 'base64url').toString()
  return json.includes('\\') ? (JSON.parse(withoutEscapes(json)) as Payload) : parsed
}

/** Replaces the escapes of valid JSON by their characters, but for quotes, backslashes, controls and halves of surrogate pairs. */
function withoutEscapes(json: string): string {
  return json.replace(/\\(?:u([\da-f]{4})|.)/gi, (escape, hex?: string) => {
    if (hex === undefined) return escape === '\\/' ? '/' : escape
    const character = String.fromCharCode(Number.parseInt(hex, 16))
    return /[\0-\x1f"\\\ud800-\udfff]/.test(character) ? escape : character
  })
}
