import { hash } from 'node:crypto'
import { decodeProtectedHeader, errors, jwtVerify, type JWTPayload } from 'jose'
import type { TableUse, Telemetry } from '../../../telemetry/telemetry.ts'
import { claimDetails, type ClaimDetails } from './claim-details.ts'
import type { KeySetSource } from './key-set.ts'
import { RecentlySeen } from './recently-seen.ts'
import { chooseFrom, chooseSecret, type KeyChooser, type VerificationKey } from './verification-keys.ts'

/** The claims of a verified token that rules count by; `details` where conditions of rules name claims. */
export type Claims = ReadonlyMap<string, string> & { readonly details?: ClaimDetails }

/** A token as it was sent: the signing input, and the characters of base64url after it, with which its signature begins. */
export type SentToken = { readonly signed: string; readonly signature: string }

export type TokenVerifier = {
  /**
   * What a token says; undefined where it cannot be verified. At once where the token was seen a moment ago, else a promise,
   * which never rejects. A token that comes while it is being verified is not verified again.
   */
  claimsOf(token: SentToken): Claims | undefined | Promise<Claims | undefined>
  readUse(): TableUse
}

/** How long a verified token is not looked at again, so that keys that are taken back end. */
const TRUSTED_MS = 300_000

/**
 * Algorithms of issuers with key sets. A public key must never verify a token that a client made with it as a secret, so `HS256`
 * is not here.
 */
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

/** A token that was verified, by its header and payload: it may come again with its signature in another spelling. */
type Verified = { readonly signature: string; readonly claims: Claims; readonly endsAtMs: number }

/**
 * Verifies JSON Web Tokens (RFC 7519): signature, algorithm, issuer and audience. `none` is not an algorithm. The times in it do not
 * matter: backends allow for clocks that differ, and some take a token that has expired for a new one. Verified tokens are
 * remembered, at most `capacity`, for five minutes or until the key set changes; those that are not valid until twice as many
 * have come.
 *
 * @param options.isSecret the key set is a shared secret
 * @param options.claims the names of those that rules count by
 * @param options.conditionClaims the names of those in conditions; of a token no more is kept
 * @param options.now milliseconds of the wall clock
 */
export function createTokenVerifier(options: {
  readonly keySet: Pick<KeySetSource, 'current' | 'keyMissing'>
  readonly isSecret: boolean
  readonly issuer: string | undefined
  readonly audience: string | undefined
  readonly claims: readonly string[]
  readonly conditionClaims?: readonly string[]
  readonly capacity: number
  readonly telemetry: Pick<Telemetry, 'tokenRead'>
  readonly now: () => number
}): TokenVerifier {
  const { keySet, isSecret, telemetry, now, capacity } = options
  const verified = new Map<string, Verified>()
  const invalid = new RecentlySeen(capacity)
  const pending = new Map<string, Promise<Claims | undefined>>()
  let evictions = 0
  let keysText: string | undefined
  let chooseKeys: KeyChooser | undefined

  function currentKeys(): KeyChooser | undefined {
    const text = keySet.current()
    if (text === keysText) return chooseKeys
    verified.clear()
    invalid.clear()
    pending.clear()
    keysText = text
    if (text === undefined) chooseKeys = undefined
    else chooseKeys = isSecret ? chooseSecret(text) : chooseFrom(text)
    return chooseKeys
  }

  async function verify({ signed, signature }: SentToken, choose: KeyChooser): Promise<Claims | undefined> {
    const header = headerOf(signed)
    const allowed = isSecret ? SYMMETRIC : ASYMMETRIC
    const keys = header && allowed.includes(header.alg) ? await choose(header) : []
    for (const { key, signatureLength } of keys) {
      const own = signature.slice(0, signatureLength)
      const payload = await payloadOf(`${signed}.${own}`, key, { ...options, algorithms: allowed })
      if (!payload) continue
      const claims = pick(payload, options.claims, options.conditionClaims)
      if (choose === chooseKeys) remember(signed, own, claims)
      telemetry.tokenRead('verified')
      return claims
    }
    const isUnknown = header !== undefined && allowed.includes(header.alg) && keys.length === 0
    // A token that names no key may be signed with a new one.
    if (isUnknown || (keys.length > 0 && header?.kid === undefined && !isSecret)) keySet.keyMissing()
    if (choose === chooseKeys && !isUnknown) invalid.add(idOf(signed, signature))
    telemetry.tokenRead(isUnknown ? 'unknown-key' : 'invalid')
    return undefined
  }

  function remember(signed: string, signature: string, claims: Claims): void {
    const id = idOf(signed)
    const [oldest] = verified.keys()
    if (!verified.has(id) && verified.size >= capacity && oldest !== undefined && verified.delete(oldest))
      evictions += 1
    verified.set(id, { signature, claims, endsAtMs: now() + TRUSTED_MS })
  }

  return {
    claimsOf(token) {
      const choose = currentKeys()
      if (choose === undefined) {
        telemetry.tokenRead('no-keys')
        return undefined
      }
      const { signed, signature } = token
      const id = idOf(signed)
      const known = verified.get(id)
      if (known && known.endsAtMs <= now()) verified.delete(id)
      else if (known && signature.startsWith(known.signature)) {
        telemetry.tokenRead('verified')
        return known.claims
      }
      const whole = idOf(signed, signature)
      if (invalid.has(whole)) {
        telemetry.tokenRead('invalid')
        return undefined
      }
      const begun = pending.get(whole)
      if (begun) return begun
      const verifying = verify(token, choose).finally(() => {
        if (pending.get(whole) === verifying) pending.delete(whole)
      })
      pending.set(whole, verifying)
      return verifying
    },
    readUse: () => ({ size: verified.size, capacity, evictions }),
  }
}

function idOf(...parts: readonly string[]): string {
  return hash('sha256', parts.join('.'), 'base64url')
}

function headerOf(signed: string): { readonly alg: string; readonly kid: unknown } | undefined {
  try {
    const { alg, kid } = decodeProtectedHeader(`${signed}.`)
    return alg === undefined ? undefined : { alg, kid }
  } catch {
    return undefined
  }
}

type Checks = {
  readonly algorithms: string[]
  readonly issuer: string | undefined
  readonly audience: string | undefined
}

/** @returns undefined where the token is not valid with this key, whatever the times in it */
async function payloadOf(
  token: string,
  key: VerificationKey['key'],
  { algorithms, issuer, audience }: Checks,
): Promise<JWTPayload | undefined> {
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms,
      ...(issuer !== undefined && { issuer }),
      ...(audience !== undefined && { audience }),
    })
    return payload
  } catch (error) {
    // Times are checked last, when all else is valid.
    const isTime =
      (error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed) &&
      times.has(error.claim)
    return isTime ? error.payload : undefined
  }
}

const times = new Set(['exp', 'nbf', 'iat'])

/** Texts and numbers; a list or an object names nobody. */
function pick(payload: JWTPayload, names: readonly string[], conditionNames: readonly string[] = []): Claims {
  const claims = new Map<string, string>()
  for (const name of names) {
    const value = Object.hasOwn(payload, name) ? payload[name] : undefined
    if (typeof value === 'string' || typeof value === 'number') claims.set(name, String(value))
  }
  if (conditionNames.length === 0) return claims
  return Object.assign(claims, { details: claimDetails(payload, conditionNames) })
}
