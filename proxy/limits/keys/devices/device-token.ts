import { createHmac, timingSafeEqual } from 'node:crypto'

// A device token proves that a device has signed in to an account. It contains the time and a MAC, but neither the account nor the rule:
// checking it requires knowing both.
//
//   4 bytes: seconds since 1970 · 16 bytes: the random id of the device · 32 bytes: HMAC-SHA256

/** The subject of a token. A token is valid for a single account and rule. */
export type TokenSubject = {
  /** The name of the rule. */
  readonly rule: string
  /** The partition key of the account under the rule. */
  readonly partitionKey: string
  /** The method, host and path, and the account as spelled. The backend may distinguish accounts that share a partition key. */
  readonly account: string
}

/** A device token: the time at which it was made, in seconds since 1970, the id of its device, and the MAC. */
export type DeviceToken = { readonly seconds: number; readonly id: Buffer; readonly mac: Buffer }

const ID_AT = 4
const MAC_AT = ID_AT + 16
const TOKEN_BYTES = MAC_AT + 32

/** Characters of a token: base64url without padding. */
export const TOKEN_LENGTH = Math.ceil((TOKEN_BYTES * 4) / 3)

const form = new RegExp(`^[\\w-]{${TOKEN_LENGTH}}$`)

/** Reads the parts of a token; undefined for any other text. Only checks the form. */
export function readToken(text: string): DeviceToken | undefined {
  if (!form.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64url')
  return {
    seconds: bytes.readUInt32BE(0),
    id: bytes.subarray(ID_AT, MAC_AT),
    mac: bytes.subarray(MAC_AT),
  }
}

/** @param id 16 random bytes */
export function writeToken(secret: string, subject: TokenSubject, seconds: number, id: Buffer): string {
  const head = Buffer.alloc(MAC_AT)
  head.writeUInt32BE(seconds)
  id.copy(head, ID_AT)
  return Buffer.concat([head, macOf(secret, subject, seconds, id)]).toString('base64url')
}

/** Whether a token was made for this subject with one of the secrets. The comparison takes the same time for every token. */
export function isMadeFor(token: DeviceToken, subject: TokenSubject, secrets: readonly string[]): boolean {
  return secrets.some((secret) => timingSafeEqual(macOf(secret, subject, token.seconds, token.id), token.mac))
}

function macOf(
  secret: string,
  { rule, partitionKey, account }: TokenSubject,
  seconds: number,
  id: Buffer,
): Buffer {
  // Each text follows its length, so that no text can pass as part of another one.
  const mac = createHmac('sha256', secret).update('sluice device 1')
  for (const text of [rule, partitionKey, account]) mac.update(`:${Buffer.byteLength(text)}:${text}`)
  return mac.update(`:${seconds}:`).update(id).digest()
}
