const MIN_RSA_BITS = 2048
/** `OPENSSL_RSA_SMALL_MODULUS_BITS` and `OPENSSL_RSA_MAX_PUBEXP_BITS`. */
const SMALL_RSA_BITS = 3072
const MAX_LARGE_RSA_EXPONENT_BITS = 64

/** Members of a JSON Web Key (RFC 7517 section 4, RFC 7518 section 6). Strings, unless the key is malformed. */
type Key = {
  readonly kty?: unknown
  readonly crv?: unknown
  readonly n?: unknown
  readonly e?: unknown
  readonly kid?: unknown
  readonly use?: unknown
  readonly alg?: unknown
  readonly key_ops?: unknown
  readonly ext?: unknown
  /** The private exponent, or key. */
  readonly d?: unknown
}

/** Maximum number of keys to try for a token without a key id, and of signatures to check for a request. */
const MAX_KEYS = 8

/** Maximum CPU time of a token's signature checks. A single check takes as long with RSA of 12,952 bits, or with a long exponent. */
const MAX_CHECKS_US = 2000

/** Maximum tokens in a request that may take one check each, regardless of CPU time: an access token and an ID token of one issuer. */
const MAX_SINGLE_CHECKS = 2

/** CPU time of one check with OpenSSL 3.5 on a core of an AMD EPYC, rounded up. */
const microseconds: Readonly<Record<string, number>> = {
  HS256: 10,
  HS384: 10,
  HS512: 10,
  ES256: 100,
  ES384: 750,
  ES512: 1750,
  EdDSA: 150,
  Ed25519: 150,
}
/** RSA with 2048 bits and the exponent 65537. The time grows with the square of the bits, and with the length of the exponent. */
const RSA_US = 50
const USUAL_EXPONENT = Buffer.from([1, 0, 1])
/** Bits of an exponent with which a check takes at most as long as with 65537, which has only two bits set. */
const SHORT_EXPONENT_BITS = 13

/** The CPU time of a signature check, in microseconds. */
export function checkCostUs(alg: string, key: Pick<Key, 'n' | 'e'> = {}): number {
  return microseconds[alg] ?? RSA_US * Math.max(1, modulusBytes(key) / 256) ** 2 * exponentFactor(key)
}

/** The factor by which a check takes longer than with the exponent 65537, rounded up. */
function exponentFactor({ e }: Pick<Key, 'e'>): number {
  const exponent = bytesOf(e)
  if (exponent.equals(USUAL_EXPONENT)) return 1
  return Math.max(1, bitLength(exponent) / SHORT_EXPONENT_BITS)
}

/**
 * Whether checking the tokens of a request takes too many signature checks, or too much CPU time.
 *
 * @param costsUs for each token, the cost of each of its checks
 */
export function haveTooManyChecks(costsUs: readonly (readonly number[])[]): boolean {
  const checked = costsUs.filter(({ length }) => length > 0)
  const areSingle = checked.every(({ length }) => length === 1)
  return !(areSingle && checked.length <= MAX_SINGLE_CHECKS) && areTooManyChecks(checked.flat())
}

/** Whether the checks of one token are too many, or take too much CPU time. */
export function areTooManyChecks(costsUs: readonly number[]): boolean {
  const sumUs = costsUs.reduce((sum, each) => sum + each, 0)
  return costsUs.length > MAX_KEYS || sumUs > MAX_CHECKS_US
}

/** Bytes of the modulus of an RSA key (`n`, RFC 7518 section 6.3.1), without leading zeros; 0 for another kind of key. */
export function modulusBytes({ n }: Pick<Key, 'n'>): number {
  return bytesOf(n).length
}

/** The bytes of a number in a key, without leading zeros. */
function bytesOf(number: unknown): Buffer {
  const bytes = Buffer.from(typeof number === 'string' ? number : '', 'base64url')
  const first = bytes.findIndex((byte) => byte !== 0)
  return bytes.subarray(first === -1 ? bytes.length : first)
}

function bitLength(bytes: Buffer): number {
  return bytes.length === 0 ? 0 : 8 * bytes.length - Math.clz32(bytes[0] ?? 0) + 24
}

/** A kind of key: its type and curve, and its signature algorithms, which cost the same. */
type Kind = { readonly kty: string; readonly crv?: string; readonly algorithms: readonly string[] }

/** Keys of other kinds verify no token. */
const kinds: readonly Kind[] = [
  { kty: 'EC', crv: 'P-256', algorithms: ['ES256'] },
  { kty: 'EC', crv: 'P-384', algorithms: ['ES384'] },
  { kty: 'EC', crv: 'P-521', algorithms: ['ES512'] },
  { kty: 'OKP', crv: 'Ed25519', algorithms: ['EdDSA', 'Ed25519'] },
  { kty: 'RSA', algorithms: ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] },
]

/**
 * Finds keys that are never used although the library accepts them: RSA keys that are too short, too large or have a long exponent, and
 * keys without a `kid` that are never tried, for any algorithm, because the keys before them use up the checks of a token.
 *
 * @param keySet any text
 * @returns a description of each kind of unused key
 */
export function findUntriedKeys(keySet: string): string[] {
  return kinds.flatMap(({ kty, crv, algorithms }) => {
    const ofKind = keysIn(keySet).filter(
      (key) => key.kty === kty && (crv === undefined || key.crv === crv) && canSign(key, algorithms),
    )
    const valid = ofKind.filter((key) => !isInvalid(key))
    const keys = valid.filter((key) => !isTooCostly(key, algorithms))
    const tried = algorithms.map((alg) => triedWith(alg, keys))
    const untried = keys.filter((key) => key.kid === undefined && !tried.flat().includes(key))
    return [
      ...describe(
        ofKind.length - valid.length,
        `(${kty})`,
        'never used',
        'an RSA key needs 2048 bits, and with more than 3072 an exponent of at most 64: use 65537',
      ),
      ...describe(
        valid.length - keys.length,
        `(${kty})`,
        'never used',
        'the check of a signature takes more than 2 ms: use 8192 bits or less, and the exponent 65537',
      ),
      ...describe(
        untried.length,
        `(${crv ?? kty}) without a kid`,
        'not used for a token without a kid',
        `the limit for that kind is ${Math.max(...tried.map(({ length }) => length))}: give each key a kid`,
      ),
    ]
  })
}

function describe(count: number, which: string, what: string, why: string): string[] {
  return count === 0 ? [] : [`${count} of its keys ${which} ${count === 1 ? 'is' : 'are'} ${what}, as ${why}`]
}

/** Whether no token can be verified with the key, or a single check takes too much CPU time. */
export function isUnusable(key: Key, algorithms: readonly string[]): boolean {
  return isInvalid(key) || isTooCostly(key, algorithms)
}

/** Whether every check with an RSA key fails: `jose` refuses short keys (RFC 7518 section 3.3), OpenSSL large ones with a long exponent. */
function isInvalid({ kty, n, e }: Key): boolean {
  const bits = bitLength(bytesOf(n))
  if (kty !== 'RSA' || bits === 0) return false
  return bits < MIN_RSA_BITS || (bits > SMALL_RSA_BITS && bitLength(bytesOf(e)) > MAX_LARGE_RSA_EXPONENT_BITS)
}

function isTooCostly(key: Pick<Key, 'n' | 'e'>, [alg = '']: readonly string[]): boolean {
  return areTooManyChecks([checkCostUs(alg, key)])
}

/** Returns the keys that are tried for a token without a `kid`. */
function triedWith(alg: string, keys: readonly Key[]): Key[] {
  const tried: Key[] = []
  for (const key of keys.filter((each) => canSign(each, [alg]))) {
    if (areTooManyChecks([...tried, key].map((each) => checkCostUs(alg, each)))) break
    tried.push(key)
  }
  return tried
}

/** Whether the library verifies signatures of one of these algorithms with a key. */
function canSign({ alg, use, key_ops: operations, ext, d }: Key, names: readonly string[]): boolean {
  if (use !== undefined && use !== 'sig') return false
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return false
  if (d !== undefined || (ext !== undefined && typeof ext !== 'boolean')) return false
  return alg === undefined || names.some((name) => name === alg)
}

/** Returns the keys of a set that are objects. A malformed key does not make the others useless (RFC 7517 section 5). */
export function keysIn(keySet: string): readonly Key[] {
  try {
    const { keys } = JSON.parse(keySet) as { keys?: unknown }
    return Array.isArray(keys)
      ? keys.filter((key): key is Key => typeof key === 'object' && key !== null)
      : []
  } catch {
    return []
  }
}
