/** The members of a payload, by name. */
export type Payload = Readonly<Record<string, unknown>>

/**
 * Returns the claims of a token under their exact names, and whole numbers that `JSON.parse` rounds, those beyond 2^53, as BigInt:
 * Python, Ruby, PHP and Java read such a user's id exactly. V8's `JSON.parse` misreads an escaped name, such as
 * `https:\/\/app.example\/plan`, if it has parsed before an object with the same preceding names, followed by a name that consists of the
 * characters of the escaped one (https://github.com/nodejs/node/issues/63785). Any client can send such an object, and customers whose
 * issuer escapes names would lose their plans.
 *
 * @param signed the header and payload of the token
 * @param parsed the payload as parsed by `JSON.parse`
 */
export function exactClaims(signed: string, parsed: Payload): Payload {
  const json = Buffer.from(signed.slice(signed.indexOf('.') + 1), 'base64url').toString()
  if (!json.includes('\\') && !hasLongNumber.test(json)) return parsed
  return JSON.parse(withoutEscapes(json), exactNumber) as Payload
}

/** 2^53 has 16 digits. */
const hasLongNumber = /\d{16}/
const isWhole = /^-?\d+$/

/** A reviver of `JSON.parse`. @param context has the number as sent, and nothing for an object or a list */
function exactNumber(_name: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source
  const isRounded = typeof value === 'number' && !Number.isSafeInteger(value)
  return isRounded && source !== undefined && isWhole.test(source) ? BigInt(source) : value
}

/** Replaces the escapes in valid JSON with their characters, except for quotes, backslashes, controls and surrogates. */
function withoutEscapes(json: string): string {
  return json.replace(/\\(?:u([\da-f]{4})|.)/gi, (escape, hex?: string) => {
    if (hex === undefined) return escape === '\\/' ? '/' : escape
    const character = String.fromCharCode(Number.parseInt(hex, 16))
    return /[\0-\x1f"\\\ud800-\udfff]/.test(character) ? escape : character
  })
}
