import { hash } from 'node:crypto'
import { createLocalJWKSet, errors, jwtVerify, type JSONWebKeySet, type JWTPayload } from 'jose'
import type { TableUse, Telemetry } from '../telemetry/telemetry.ts'
import type { KeySetSource } from './key-set.ts'

/** What a verified token says, of what rules count by. */
export type Claims = ReadonlyMap<string, string>

export type TokenVerifier = {
  /**
   * What a token says; undefined where it cannot be verified. At once where the token was verified a moment ago, else a
   * promise, which never rejects.
   */
  claimsOf(token: string): Claims | undefined | Promise<Claims | undefined>
  readUse(): TableUse
}

/** How long a verified token is not looked at again, so that keys that are taken back end. */
const TRUSTED_MS = 300_000

/** What issuers sign with. A public key never verifies what a client has made with it as a secret: `HS256` is not here. */
const ASYMMETRIC = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
]
const SYMMETRIC = ['HS256', 'HS384', 'HS512']

type Key = Parameters<typeof jwtVerify>[1] | ReturnType<typeof createLocalJWKSet>

/**
 * Verifies JSON Web Tokens (RFC 7519): signature, algorithm, time, issuer and audience. `none` is no algorithm. Verified
 * tokens are remembered by their hash, at most `capacity`, until they expire, for at most five minutes, or until the key
 * set changes.
 *
 * @param options.isSecret the key set is a shared secret
 * @param options.claims the names of those that rules count by; of a token no more is kept
 * @param options.now milliseconds of the wall clock
 */
export function createTokenVerifier(options: {
  readonly keySet: Pick<KeySetSource, 'current' | 'keyMissing'>
  readonly isSecret: boolean
  readonly issuer: string | undefined
  readonly audience: string | undefined
  readonly claims: readonly string[]
  readonly capacity: number
  readonly telemetry: Pick<Telemetry, 'tokenRead'>
  readonly now: () => number
}): TokenVerifier {
  const { keySet, isSecret, issuer, audience, telemetry, now, capacity } = options
  const verified = new Map<string, { readonly claims: Claims; readonly endsAtMs: number }>()
  let evictions = 0
  let keysText: string | undefined
  let key: Key | undefined

  function currentKey(): Key | undefined {
    const text = keySet.current()
    if (text === keysText) return key
    verified.clear()
    keysText = text
    key = text === undefined ? undefined : readKey(text, isSecret)
    return key
  }

  async function verify(token: string, id: string, by: Key): Promise<Claims | undefined> {
    try {
      const { payload } = await jwtVerify(token, by as ReturnType<typeof createLocalJWKSet>, {
        algorithms: isSecret ? SYMMETRIC : ASYMMETRIC,
        currentDate: new Date(now()),
        ...(issuer !== undefined && { issuer }),
        ...(audience !== undefined && { audience }),
      })
      const claims = pick(payload, options.claims)
      if (by === key) remember(id, claims, payload.exp)
      telemetry.tokenRead('verified')
      return claims
    } catch (error) {
      const isUnknown = error instanceof errors.JWKSNoMatchingKey
      if (isUnknown) keySet.keyMissing()
      telemetry.tokenRead(isUnknown ? 'unknown-key' : 'invalid')
      return undefined
    }
  }

  function remember(id: string, claims: Claims, expires: number | undefined): void {
    const [oldest] = verified.keys()
    if (verified.size >= capacity && oldest !== undefined && verified.delete(oldest)) evictions += 1
    verified.set(id, { claims, endsAtMs: Math.min(now() + TRUSTED_MS, (expires ?? Infinity) * 1000) })
  }

  return {
    claimsOf(token) {
      const by = currentKey()
      if (by === undefined) {
        telemetry.tokenRead('no-keys')
        return undefined
      }
      const id = hash('sha256', token, 'base64url')
      const known = verified.get(id)
      if (known && known.endsAtMs > now()) {
        telemetry.tokenRead('verified')
        return known.claims
      }
      if (known) verified.delete(id)
      return verify(token, id, by)
    },
    readUse: () => ({ size: verified.size, capacity, evictions }),
  }
}

/** Undefined where the text is no key set after all. */
function readKey(text: string, isSecret: boolean): Key | undefined {
  if (isSecret) return new TextEncoder().encode(text)
  try {
    return createLocalJWKSet(JSON.parse(text) as JSONWebKeySet)
  } catch {
    return undefined
  }
}

/** Texts and numbers; what is a list or an object names nobody. */
function pick(payload: JWTPayload, names: readonly string[]): Claims {
  const claims = new Map<string, string>()
  for (const name of names) {
    const value = Object.hasOwn(payload, name) ? payload[name] : undefined
    if (typeof value === 'string' || typeof value === 'number') claims.set(name, String(value))
  }
  return claims
}
