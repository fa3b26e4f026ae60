import { expect, test } from 'vitest'
import {
  areTooManyChecks,
  checkCostUs,
  findUntriedKeys,
  haveTooManyChecks,
} from '../../../../../proxy/limits/keys/tokens/check-costs.ts'

/** The modulus of an RSA key of this size. */
const modulus = (bits: number): string => Buffer.alloc(bits / 8, 0x80).toString('base64url')
const rsa = (bits: number) => ({ kty: 'RSA', n: modulus(bits), e: 'AQAB' })
/** An RSA key whose exponent has this many bits, after some zero bytes. */
const rsaWithExponent = (bits: number, exponentBits: number) => ({
  ...rsa(bits),
  e: Buffer.from((2n ** BigInt(exponentBits) - 1n).toString(16).padStart(1024, '0'), 'hex').toString(
    'base64url',
  ),
})
const onCurve = (crv: string) => ({ kty: crv === 'Ed25519' ? 'OKP' : 'EC', crv })
const keySet = (...keys: object[]): string => JSON.stringify({ keys })
const repeat = (count: number, key: object): object[] => Array.from({ length: count }, () => key)

test.each([
  ['ES256', {}, 8],
  ['ES384', {}, 2],
  ['ES512', {}, 1],
  ['EdDSA', {}, 8],
  ['HS256', {}, 8],
  ['RS256', rsa(2048), 8],
  ['PS512', rsa(4096), 8],
  ['RS256', rsa(8192), 2],
  ['RS256', rsa(12800), 1],
  ['RS256', rsa(16384), 0],
  ['RS256', rsaWithExponent(2048, 2), 8],
  ['RS256', rsaWithExponent(2048, 64), 8],
  ['RS256', rsaWithExponent(2048, 128), 4],
  ['RS256', rsaWithExponent(2048, 1024), 0],
  ['PS256', rsaWithExponent(3072, 512), 0],
  ['RS256', rsaWithExponent(4096, 64), 2],
  ['RS256', rsaWithExponent(4096, 2048), 0],
  ['RS256', rsaWithExponent(8192, 13), 2],
  ['RS256', rsaWithExponent(8192, 17), 1],
  ['RS256', { ...rsa(8192), e: 'AAAAAQAB' }, 2],
])('a token may take so many checks of %s', (alg, key, most) => {
  const costsOf = (count: number): number[] => Array.from({ length: count }, () => checkCostUs(alg, key))
  expect(areTooManyChecks(costsOf(most))).toBe(false)
  expect(areTooManyChecks(costsOf(most + 1))).toBe(true)
})

test.each([2048, 3072, 4096])(
  'a check with %i bits costs more with each bit of a longer exponent',
  (bits) => {
    const costUs = (exponentBits: number): number => checkCostUs('RS256', rsaWithExponent(bits, exponentBits))
    for (let length = 14; length <= bits; length++) expect(costUs(length)).toBeGreaterThan(costUs(length - 1))
    expect(costUs(bits)).toBeGreaterThan((costUs(13) * bits) / 16)
  },
)

test.each<[string, number[], boolean]>([
  ['an access token and an ID token of ES512 that name their keys', [1, 1], false],
  ['these beside tokens that are known', [1, 0, 1, 0], false],
  ['three tokens of ES512', [1, 1, 1], true],
  ['a token of ES512 with two keys to try beside another one', [2, 1], true],
])('whether the checks of a request are too many: %s', (_, checks, areTooMany) => {
  const costsUs = checks.map((count) => Array.from({ length: count }, () => checkCostUs('ES512')))
  expect(haveTooManyChecks(costsUs)).toBe(areTooMany)
})

test.each<[string, string, string[]]>([
  ['a key of each kind', keySet(onCurve('P-521'), onCurve('P-384'), onCurve('P-256'), rsa(2048)), []],
  ['keys that all have names', keySet(...['a', 'b'].map((kid) => ({ ...onCurve('P-521'), kid }))), []],
  ['a key that encrypts', keySet(onCurve('P-521'), { ...onCurve('P-521'), use: 'enc' }), []],
  [
    'a second key of P-521',
    keySet(rsa(2048), ...repeat(2, onCurve('P-521'))),
    [
      '1 of its keys (P-521) without a kid is not used for a token without a kid, as the limit for that kind is 1: give each key a kid',
    ],
  ],
  [
    'one after a key with a name',
    keySet({ ...onCurve('P-521'), kid: 'a' }, onCurve('P-521')),
    [
      '1 of its keys (P-521) without a kid is not used for a token without a kid, as the limit for that kind is 1: give each key a kid',
    ],
  ],
  [
    'many keys of two kinds',
    keySet(...repeat(10, onCurve('P-256')), ...repeat(3, onCurve('P-384'))),
    [
      '2 of its keys (P-256) without a kid are not used for a token without a kid, as the limit for that kind is 8: give each key a kid',
      '1 of its keys (P-384) without a kid is not used for a token without a kid, as the limit for that kind is 2: give each key a kid',
    ],
  ],
  [
    'eight keys of each of two algorithms',
    keySet(...repeat(8, { ...rsa(2048), alg: 'RS256' }), ...repeat(8, { ...rsa(2048), alg: 'PS256' })),
    [],
  ],
  [
    'nine keys of an algorithm',
    keySet(...repeat(9, { ...rsa(2048), alg: 'PS256' })),
    [
      '1 of its keys (RSA) without a kid is not used for a token without a kid, as the limit for that kind is 8: give each key a kid',
    ],
  ],
  ...[rsa(16384), rsaWithExponent(2048, 1024)].flatMap((large) =>
    ['a', undefined].map((kid): [string, string, string[]] => [
      `a key of ${large.n.length} characters with an exponent of ${large.e.length}, kid ${kid}`,
      keySet({ ...large, kid }, ...repeat(8, rsa(2048))),
      [
        '1 of its keys (RSA) is never used, as the check of a signature takes more than 2 ms: use 8192 bits or less, and the exponent 65537',
      ],
    ]),
  ),
  ...[rsa(1024), rsa(2040), rsaWithExponent(3080, 65), rsaWithExponent(4096, 131)].map(
    (invalid): [string, string, string[]] => [
      `a key of ${invalid.n.length} characters that OpenSSL or jose refuses`,
      keySet(invalid, ...repeat(8, rsa(2048))),
      [
        '1 of its keys (RSA) is never used, as an RSA key needs 2048 bits, and with more than 3072 an exponent of at most 64: use 65537',
      ],
    ],
  ),
  ...[rsa(2048), rsaWithExponent(3072, 65), rsaWithExponent(4096, 64)].map(
    (valid): [string, string, string[]] => [
      `a key of ${valid.n.length} characters and an exponent as long as it may be`,
      keySet({ ...valid, kid: 'a' }),
      [],
    ],
  ),
  ...(
    [
      { key_ops: ['encrypt'] },
      { key_ops: [] },
      { key_ops: 'verify' },
      { use: 'enc' },
      { ext: 'yes' },
      { d: 'AQAB' },
      { kty: 'RSA' },
    ] as const
  ).map((other): [string, string, string[]] => [
    `keys of another use, ${JSON.stringify(other)}`,
    keySet(...repeat(3, { ...onCurve('P-521'), ...other }), { ...onCurve('P-521'), key_ops: ['verify'] }),
    [],
  ]),
  ['keys for key agreement', keySet(...repeat(9, { ...onCurve('P-256'), alg: 'ECDH-ES' })), []],
  [
    'keys of curves that verify no token',
    keySet(...['X25519', 'secp256k1'].flatMap((crv) => repeat(9, onCurve(crv)))),
    [],
  ],
  ['a large key that encrypts', keySet(rsa(2048), { ...rsa(16384), use: 'enc' }, rsa(2048)), []],
  ['a secret', 'a secret of thirty-two bytes, at least', []],
  ['keys that are no keys', keySet({}), []],
  [
    'a key beside those whose members are no texts',
    keySet(
      ...[5, null, {}, [], true].flatMap((other) => [
        { kty: 'RSA', n: other },
        { kty: 'EC', crv: other },
        { kty: other, crv: other, n: other, kid: other, use: other },
      ]),
      onCurve('P-256'),
    ),
    [],
  ],
  ['no list of keys', '{"keys":7}', []],
  ['a list of other things', '{"keys":[null,7]}', []],
])('keys that cannot be used: %s', (_, text, found) => expect(findUntriedKeys(text)).toEqual(found))
