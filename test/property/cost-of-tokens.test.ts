import { generateKeyPairSync, webcrypto } from 'node:crypto'
import fc from 'fast-check'
import { afterEach, expect, test, vi } from 'vitest'
import { TokenVerifier } from '../../proxy/limits/keys/tokens/token-claims.ts'
import { createTokenReader } from '../../proxy/limits/keys/tokens/token-reader.ts'
import { makePolicy } from '../support/limiter/charges.ts'
import { runs } from '../support/random/runs.ts'

/*
 * The attack: a request with several forged tokens without `kid`. The gateway tries every key of the set on each token. Tokens are read
 * before any limit, so a refused client costs as many signature checks as an admitted one.
 */

/** The number of checks that take two milliseconds, but at most eight. */
const maxChecks = { ES256: 8, ES384: 2, ES512: 1 } as const
const curves = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' } as const
const signatureBytes = { ES256: 64, ES384: 96, ES512: 132 } as const
type Algorithm = keyof typeof curves
const algorithm = fc.constantFrom<Algorithm[]>('ES256', 'ES384', 'ES512')
const policy = { ...makePolicy('user', 5, 60_000), partition: [{ kind: 'jwt', name: 'sub' }] } as const

const publicKeys = Object.fromEntries(
  Object.entries(curves).map(([alg, namedCurve]) => [
    alg,
    Array.from({ length: 10 }, () =>
      generateKeyPairSync('ec', { namedCurve }).publicKey.export({ format: 'jwk' }),
    ),
  ]),
)

function keySetOf(keys: number, alg: Algorithm, areNamed: boolean): string {
  const chosen = publicKeys[alg]?.slice(0, keys) ?? []
  return JSON.stringify({
    keys: chosen.map((key, i) => ({ ...key, alg, ...(areNamed && { kid: `k${i}` }) })),
  })
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** The signature is in the range of the curve, so that the check runs to its end. */
function madeUpToken(alg: Algorithm, kid: string | undefined, id: number): string {
  const signature = Buffer.alloc(signatureBytes[alg], id + 1)
  signature[0] = signature[signature.length / 2] = 0
  return `${encode({ alg, ...(kid !== undefined && { kid }) })}.${encode({ sub: 'x', id })}.${signature.toString('base64url')}`
}

afterEach(() => void vi.restoreAllMocks())

test('the tokens of a request cost no more signature checks than one token, or than one each of two tokens', async () => {
  const verify = vi.spyOn(webcrypto.subtle, 'verify')
  const drawn = fc.record({
    alg: algorithm,
    keys: fc.integer({ min: 1, max: 10 }),
    areNamed: fc.boolean(),
    // Several lines of `Authorization` are joined.
    between: fc.constantFrom(', ', ', Bearer ', ', Basic ', 'Bearer '),
    kids: fc.array(fc.option(fc.constantFrom('k0', 'k1', 'other'), { nil: undefined, freq: 1 }), {
      minLength: 1,
      maxLength: 4,
    }),
  })
  await fc.assert(
    fc.asyncProperty(drawn, async ({ alg, keys, areNamed, between, kids }) => {
      const text = keySetOf(keys, alg, areNamed)
      const verifier = new TokenVerifier({
        keySet: { current: () => text, keyMissing: () => undefined },
        isSecret: false,
        issuer: undefined,
        audience: undefined,
        claims: ['sub'],
        capacity: 100,
        telemetry: { tokenRead: () => undefined },
        now: () => 0,
      })
      const tokens = kids.map((kid, id) => madeUpToken(alg, kid, id))
      const rawHeaders = ['authorization', `Bearer ${tokens.join(between)}`]
      verify.mockClear()
      const claims = await createTokenReader([policy], verifier).read([policy], { rawHeaders })
      const most = maxChecks[alg]
      const checks = kids
        .map((kid) => keysFor(kid, Math.min(keys, most), keys, areNamed))
        .filter((count) => count > 0)
      const needed = checks.reduce((sum, each) => sum + each, 0)
      const areSingle = checks.length <= 2 && needed === checks.length
      const isRefused = needed > most && !areSingle
      expect(claims).toBe(isRefused ? 'too-many' : undefined)
      expect(verify).toHaveBeenCalledTimes(isRefused ? 0 : needed)
      // A repeated token needs no check.
      if (kids.length > 1) return
      verify.mockClear()
      await createTokenReader([policy], verifier).read([policy], { rawHeaders })
      expect(verify).not.toHaveBeenCalled()
    }),
    { numRuns: runs(400) },
  )
})

/**
 * The number of keys that may have signed a token.
 *
 * @param tried the number of keys tried if the token names no key
 */
function keysFor(kid: string | undefined, tried: number, keys: number, areNamed: boolean): number {
  if (kid === undefined || !areNamed) return tried
  return Number(kid.slice(1)) < keys ? 1 : 0
}
