import { isUtf8 } from 'node:buffer'
import { withoutMark, withoutMarkBytes } from '../../../../shared/settings/byte-order-mark.ts'
import { readRegularFile } from '../../../../shared/settings/regular-file.ts'

/** The source of the keys that verify tokens. */
export type KeySetPlace =
  | { readonly kind: 'url'; readonly url: string }
  /** A JSON Web Key Set. */
  | ({ readonly kind: 'file' } & KeyFile)
  /** A secret that is shared with the issuer of the tokens. */
  | ({ readonly kind: 'secret' } & KeyFile)

/** `digest`: the SHA-256 of the file's content when the settings were read, so that a reload detects changes. */
type KeyFile = { readonly path: string; readonly digest?: string }

const TIMEOUT_MS = 5_000
const MAX_BYTES = 1024 * 1024

/** The shortest secret for HS256 (RFC 7518 section 3.2). */
const MIN_SECRET_BYTES = 32

/**
 * Loads the text of a key set, or the secret with one character per byte. Rejects if it cannot be read or is invalid, and for a URL after
 * five seconds.
 */
export async function loadKeySet(place: KeySetPlace): Promise<string> {
  if (place.kind === 'url') return checkKeySet(await fetchText(place.url))
  const content = await readRegularFile(place.path)
  return place.kind === 'secret' ? checkSecret(content) : checkKeySet(content.toString())
}

async function fetchText(url: string): Promise<string> {
  const response = await fetch(url, {
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
    headers: { accept: 'application/jwk-set+json, application/json' },
  })
  if (!response.ok) {
    // Otherwise the connection would wait for the rest of the body.
    await response.body?.cancel().catch(() => undefined)
    throw new Error(`the server answered ${response.status}`)
  }
  let text = ''
  for await (const chunk of (response.body ?? new Blob([]).stream()).pipeThrough(new TextDecoderStream())) {
    text += chunk
    if (text.length > MAX_BYTES) throw new Error('the answer is larger than 1 MiB')
  }
  return text
}

/**
 * @param content a text in UTF-8, or the bytes of the secret, of which all count
 * @returns the secret with one character per byte, without the byte order mark and the line end of a text
 * @throws Error if it is shorter than 32 bytes
 */
export function checkSecret(content: Buffer): string {
  const isText = isUtf8(content)
  const bytes = (isText ? withoutMarkBytes(content) : content).toString('latin1')
  const secret = isText ? bytes.replace(/\r?\n$/, '') : bytes
  if (secret.length < MIN_SECRET_BYTES) throw new Error(`shorter than ${MIN_SECRET_BYTES} bytes`)
  return secret
}

/** @throws Error if the text is not a key set */
export function checkKeySet(text: string): string {
  const json = withoutMark(text)
  const read: unknown = JSON.parse(json)
  const keys: unknown = typeof read === 'object' && read !== null && 'keys' in read ? read.keys : undefined
  if (!Array.isArray(keys) || !keys.some((key) => typeof key === 'object' && key !== null))
    throw new Error('no key set: needs an object with a list of keys')
  return json
}
