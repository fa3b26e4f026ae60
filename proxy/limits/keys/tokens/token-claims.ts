import { hash } from 'node:crypto'
import { decodeProtectedHeader, errors, jwtVerify, type JWTPayload } from 'jose'
import { ownCopy } from '../../../http/message/detach-buffer.ts'
import type { TableUse, Telemetry } from '../../../telemetry/telemetry.ts'
import { haveTooManyChecks } from './check-costs.ts'
import { claimDetails, isTextOrNumber, type ClaimDetails } from './claim-details.ts'
import { exactClaims, type Payload } from './exact-claims.ts'
import type { KeySet } from './key-set.ts'
import { RecentlySeen } from './recently-seen.ts'
import { chooseFrom, chooseSecret, type KeyChooser, type VerificationKey } from './verification-keys.ts'

/** The claims of a verified token that rules count by. `details` is set if conditions of rules test claims. */
export type Claims = ReadonlyMap<string, string> & { readonly details?: ClaimDetails }

/** A token as sent: the signing input, and the base64url characters after it, which begin with the signature. */
export type SentToken = { readonly signed: string; readonly signature: string }

/** How long a verified token is not verified again, so that revoked keys stop being accepted. */
const TRUSTED_MS = 300_000

/**
 * Algorithms of issuers with key sets. `HS256` is not listed, because a public key must never verify a token that a client made with the
 * public key as a secret.
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

/** A verified token. It is identified by its header and payload, because its signature may be spelled differently the next time. */
type Verified = { readonly signature: string; readonly claims: Claims; readonly endsAtMs: number }

export type TokenVerifierOptions = {
  readonly keySet: Pick<KeySet, 'current' | 'keyMissing'>
  /** Whether the key set is a shared secret. */
  readonly isSecret: boolean
  readonly issuer: string | undefined
  readonly audience: string | undefined
  /** The names of the claims that rules count by. */
  readonly claims: readonly string[]
  /** The names of the claims in conditions. Only the claims of these two lists are kept. */
  readonly conditionClaims?: readonly string[]
  /** Maximum number of verified tokens to remember. */
  readonly capacity: number
  readonly telemetry: Pick<Telemetry, 'tokenRead'>
  /** Milliseconds of the wall clock. */
  readonly now: () => number
}

/**
 * Verifies JSON Web Tokens (RFC 7519): signature, algorithm, issuer and audience. The algorithm `none` is not accepted. The times in a
 * token are ignored, because backends tolerate clock skew, and some exchange an expired token for a new one. At most `capacity` verified
 * tokens are remembered, for five minutes or until the key set changes. Invalid tokens are remembered until up to twice as many have
 * followed.
 */
export class TokenVerifier {
  readonly #options: TokenVerifierOptions
  readonly #algorithms: string[]
  /** The key set that the tokens below were verified with, and the function that chooses keys from it. */
  #keysText: string | undefined
  #chooseKeys: KeyChooser | undefined
  readonly #verified = new Map<string, Verified>()
  #evictions = 0
  readonly #invalid: RecentlySeen
  /** Tokens that are being verified. */
  readonly #pending = new Map<string, Promise<Claims | undefined>>()

  constructor(options: TokenVerifierOptions) {
    this.#options = options
    this.#algorithms = options.isSecret ? SYMMETRIC : ASYMMETRIC
    this.#invalid = new RecentlySeen(options.capacity)
  }

  /**
   * Returns the claims of a token, or undefined if it cannot be verified. For a token that was seen recently, returns them at once,
   * otherwise as a promise, which never rejects. Several requests with the same token share one verification.
   */
  claimsOf(token: SentToken): Claims | undefined | Promise<Claims | undefined> {
    const { telemetry } = this.#options
    const choose = this.#currentKeys()
    if (choose === undefined) {
      telemetry.tokenRead('no-keys')
      return undefined
    }
    const known = this.#findVerified(token)
    if (known) {
      telemetry.tokenRead('verified')
      return known
    }
    const id = idOf(token.signed, token.signature)
    if (this.#invalid.has(id)) {
      telemetry.tokenRead('invalid')
      return undefined
    }
    return this.#pending.get(id) ?? this.#begin(id, token, choose)
  }

  /**
   * Whether the tokens of one request need more signature checks or CPU time than a single token may, and more than one check each for two
   * tokens. Otherwise a request with made-up tokens would cost a multiple, even if it is refused. Tokens that were seen recently need no
   * check.
   */
  async needTooManyChecks(tokens: readonly SentToken[]): Promise<boolean> {
    const costsUs = await Promise.all(tokens.map((token) => this.#costsOfChecks(token)))
    return haveTooManyChecks(costsUs)
  }

  /**
   * Returns the tokens without duplicates, and without the characters after the longest signature that a key makes for them. Several
   * texts of one header may have the same token, followed by something else.
   */
  async withoutRepeated(tokens: readonly SentToken[]): Promise<SentToken[]> {
    const choose = this.#currentKeys()
    const distinct = new Map<string, SentToken>()
    for (const token of tokens) {
      const { keys } = choose ? await this.#keysFor(token, choose) : { keys: [] }
      const length = Math.max(0, ...keys.map(({ signatureLength }) => signatureLength))
      const own = { signed: token.signed, signature: token.signature.slice(0, length) }
      distinct.set(idOf(own.signed, own.signature), own)
    }
    return [...distinct.values()]
  }

  readUse(): TableUse {
    return { size: this.#verified.size, capacity: this.#options.capacity, evictions: this.#evictions }
  }

  /** Returns the current keys, and drops the tokens that the previous key set has verified. */
  #currentKeys(): KeyChooser | undefined {
    const { keySet, isSecret } = this.#options
    const text = keySet.current()
    if (text === this.#keysText) return this.#chooseKeys
    this.#verified.clear()
    this.#invalid.clear()
    this.#pending.clear()
    this.#keysText = text
    if (text === undefined) this.#chooseKeys = undefined
    else this.#chooseKeys = isSecret ? chooseSecret(text) : chooseFrom(text)
    return this.#chooseKeys
  }

  #findVerified({ signed, signature }: SentToken): Claims | undefined {
    const id = idOf(signed)
    const known = this.#verified.get(id)
    if (!known) return undefined
    if (known.endsAtMs <= this.#options.now()) {
      this.#verified.delete(id)
      return undefined
    }
    return signature.startsWith(known.signature) ? known.claims : undefined
  }

  /** The CPU time of each check of a token, in microseconds. */
  async #costsOfChecks(token: SentToken): Promise<number[]> {
    const choose = this.#currentKeys()
    if (choose === undefined || this.#findVerified(token)) return []
    const id = idOf(token.signed, token.signature)
    if (this.#invalid.has(id) || this.#pending.has(id)) return []
    const { keys } = await this.#keysFor(token, choose)
    return keys.map(({ checkUs }) => checkUs)
  }

  /** The header of a token, and the keys that may have signed it: undefined and empty if its algorithm is not allowed. */
  async #keysFor({ signed }: SentToken, choose: KeyChooser): Promise<FoundKeys> {
    const header = headerOf(signed)
    if (header === undefined || !this.#algorithms.includes(header.alg)) return { header: undefined, keys: [] }
    return { header, keys: await choose(header) }
  }

  #begin(id: string, token: SentToken, choose: KeyChooser): Promise<Claims | undefined> {
    const verifying = this.#verify(token, choose).finally(() => {
      if (this.#pending.get(id) === verifying) this.#pending.delete(id)
    })
    this.#pending.set(id, verifying)
    return verifying
  }

  async #verify(token: SentToken, choose: KeyChooser): Promise<Claims | undefined> {
    const { isSecret, keySet, telemetry } = this.#options
    const { signed, signature } = token
    const { header, keys } = await this.#keysFor(token, choose)
    const checks = { ...this.#options, algorithms: this.#algorithms }
    for (const { key, signatureLength } of keys) {
      const own = signature.slice(0, signatureLength)
      const payload = await payloadOf(`${signed}.${own}`, key, checks)
      if (!payload) continue
      const { claims: names, conditionClaims } = this.#options
      const claims = pick(exactClaims(signed, payload), names, conditionClaims)
      if (choose === this.#chooseKeys) this.#remember(signed, own, claims)
      telemetry.tokenRead('verified')
      return claims
    }
    const isUnknown = header !== undefined && keys.length === 0
    // A token without a key id may be signed with a new key.
    if (isUnknown || (keys.length > 0 && header?.kid === undefined && !isSecret)) keySet.keyMissing()
    if (choose === this.#chooseKeys && !isUnknown) this.#invalid.add(idOf(signed, signature))
    telemetry.tokenRead(isUnknown ? 'unknown-key' : 'invalid')
    return undefined
  }

  #remember(signed: string, signature: string, claims: Claims): void {
    const { capacity, now } = this.#options
    const id = idOf(signed)
    const nowMs = now()
    const isFull = !this.#verified.has(id) && this.#verified.size >= capacity
    const [oldest] = this.#verified
    if (isFull && oldest) {
      const [oldestId, { endsAtMs }] = oldest
      this.#verified.delete(oldestId)
      // Clients do not come back with tokens that have expired, so a table in normal use is full of entries that have ended.
      if (endsAtMs > nowMs) this.#evictions += 1
    }
    this.#verified.set(id, { signature: ownCopy(signature), claims, endsAtMs: nowMs + TRUSTED_MS })
  }
}

function idOf(...parts: readonly string[]): string {
  return hash('sha256', parts.join('.'), 'base64url')
}

type Header = { readonly alg: string; readonly kid: unknown }

type FoundKeys = { readonly header: Header | undefined; readonly keys: readonly VerificationKey[] }

function headerOf(signed: string): Header | undefined {
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

/** @returns undefined if the token is not valid with this key, apart from its times */
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
    // The library checks times last, after everything else was valid.
    const isTime =
      (error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed) &&
      times.has(error.claim)
    return isTime ? error.payload : undefined
  }
}

const times = new Set(['exp', 'nbf', 'iat'])

/** Picks strings and numbers. A list or an object does not identify a client. */
function pick(payload: Payload, names: readonly string[], conditionNames: readonly string[] = []): Claims {
  const claims = new Map<string, string>()
  for (const name of names) {
    const value = Object.hasOwn(payload, name) ? payload[name] : undefined
    if (isTextOrNumber(value)) claims.set(name, String(value))
  }
  if (conditionNames.length === 0) return claims
  return Object.assign(claims, { details: claimDetails(payload, conditionNames) })
}
