import { createLocalJWKSet, type JWK } from 'jose'
import { areTooManyChecks, checkCostUs, isUnusable, keysIn, modulusBytes } from './check-costs.ts'

/** A key that verifies a signature. */
export type VerificationKey = {
  readonly key: Uint8Array | Awaited<ReturnType<ReturnType<typeof createLocalJWKSet>>>
  /** The length of the key's signatures in base64url without padding. */
  readonly signatureLength: number
  /** The CPU time of a signature check, in microseconds. */
  readonly checkUs: number
}

/** Chooses the keys that may have signed a token, by its header. */
export type KeyChooser = (header: {
  readonly alg: string
  readonly kid: unknown
}) => Promise<readonly VerificationKey[]>

/** Bytes of a signature, for algorithms that fix its length (RFC 7518 section 3.1, RFC 8037 section 3.1). */
const signatureBytes: Readonly<Record<string, number>> = {
  HS256: 32,
  HS384: 48,
  HS512: 64,
  ES256: 64,
  ES384: 96,
  ES512: 132,
  EdDSA: 64,
  Ed25519: 64,
}

/** @param secret the secret that is shared with the issuer of the tokens, one character per byte */
export function chooseSecret(secret: string): KeyChooser {
  const key = Buffer.from(secret, 'latin1')
  return ({ alg }) => {
    const signatureLength = base64Length(signatureBytes[alg] ?? 0)
    return Promise.resolve([{ key, signatureLength, checkUs: checkCostUs(alg) }])
  }
}

/**
 * Chooses the keys with the token's `kid` from a key set. Keys and tokens may lack a `kid` (RFC 7517 section 4.5, RFC 7515 section 4.1.4).
 * For a token without one, every key that fits its algorithm is tried; if no key has the token's `kid`, the keys without one are tried: as
 * many as the signature checks of one request allow.
 *
 * @returns undefined if the text is not a key set, or has no key that the library accepts
 */
export function chooseFrom(keySet: string): KeyChooser | undefined {
  const single = keysIn(keySet).flatMap((jwk) => findersOf(jwk as JWK))
  if (single.length === 0) return undefined
  return async ({ alg, kid }) => {
    const named = single.filter(({ jwk }) => kid !== undefined && jwk.kid === kid)
    const others = single.filter(({ jwk }) => kid === undefined || jwk.kid === undefined)
    const chosen: VerificationKey[] = []
    for (const { jwk, find } of named.length > 0 ? named : others) {
      const key = await find({ alg }).catch(() => undefined)
      // A key that is for another use, unreadable, too short or too large is skipped, and takes no check.
      if (!key || isUnusable(jwk, [alg])) continue
      const checkUs = checkCostUs(alg, jwk)
      if (areTooManyChecks([...chosen.map((each) => each.checkUs), checkUs])) break
      const signatureLength = base64Length(signatureBytes[alg] ?? modulusBytes(jwk))
      chosen.push({ key, signatureLength, checkUs })
    }
    return chosen
  }
}

type KeyFinder = { readonly jwk: JWK; readonly find: ReturnType<typeof createLocalJWKSet> }

/** Returns an empty list for a key that the library does not accept. */
function findersOf(jwk: JWK): KeyFinder[] {
  try {
    return [{ jwk, find: createLocalJWKSet({ keys: [jwk] }) }]
  } catch {
    return []
  }
}

function base64Length(bytes: number): number {
  return Math.ceil((bytes * 4) / 3)
}
