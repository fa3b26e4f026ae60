/** Members of a JSON Web Key (RFC 7517 section 4, RFC 7518 section 6): texts, but for those of a malformed key. */
type Key = {
  readonly kty?: unknown
  readonly crv?: unknown
  readonly n?: unknown
  readonly kid?: unknown
  readonly use?: unknown
  readonly alg?: unknown
}

/** Keys that are tried at most for a token that names none, and signatures that are checked at most for a request. */
const MAX_KEYS = 8

/** CPU time that the signature checks of a token take at most, but for a single one. */
const MAX_CHECKS_US = 2000

/** Tokens of a request that may take a check each, whatever its CPU time: an access token and an ID token of one issuer. */
const MAX_SINGLE_CHECKS = 2

/** CPU time of one check by OpenSSL 3.5 on a core of an AMD EPYC, rounded up. */
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
/** Of RSA with 2048 bits; it grows with the square of that. */
const RSA_US = 50

/** Microseconds of CPU time for the check of a signature. */
export function checkCostUs(alg: string, key: Pick<Key, 'n'> = {}): number {
  return microseconds[alg] ?? RSA_US * Math.max(1, modulusBytes(key) / 256) ** 2
}

/**
 * Whether the tokens of a request take too many signature checks, or too much CPU time.
 *
 * @param costsUs of each token those of its checks
 */
export function haveTooManyChecks(costsUs: readonly (readonly number[])[]): boolean {
  const checked = costsUs.filter(({ length }) => length > 0)
  const areSingle = checked.every(({ length }) => length === 1)
  return !(areSingle && checked.length <= MAX_SINGLE_CHECKS) && areTooManyChecks(checked.flat())
}

/** Whether these checks of one token are too many, or take too much CPU time. */
export function areTooManyChecks(costsUs: readonly number[]): boolean {
  const sumUs = costsUs.reduce((sum, each) => sum + each, 0)
  return costsUs.length > MAX_KEYS || (costsUs.length > 1 && sumUs > MAX_CHECKS_US)
}

export function modulusBytes({ n }: Pick<Key, 'n'>): number {
  const modulus = Buffer.from(typeof n === 'string' ? n : '', 'base64url')
  return modulus.length - modulus.findIndex((byte) => byte !== 0)
}

/** The algorithms of a kind of keys, a curve or RSA; those of one kind cost the same. Keys of other kinds verify no token. */
const algorithms: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['P-256', ['ES256']],
  ['P-384', ['ES384']],
  ['P-521', ['ES512']],
  ['Ed25519', ['EdDSA', 'Ed25519']],
  ['RSA', ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']],
])

/**
 * Finds keys without a name that are never tried, whatever the algorithm of a token, since those before them take all its checks. Nobody can
 * sign a token with them that is verified.
 *
 * @param keySet any text
 * @returns a description for each kind of such keys
 */
export function findUntriedKeys(keySet: string): string[] {
  const usable = keysIn(keySet).filter(({ use }) => use === undefined || use === 'sig')
  return [...algorithms].flatMap(([kind, names]) => {
    const keys = usable.filter(({ crv, kty }) => (kty === 'RSA' ? kty : crv) === kind)
    const tried = names.map((alg) => triedWith(alg, keys))
    const untried = keys.filter(
      (key) => key.kid === undefined && canSign(key, names) && !tried.flat().includes(key),
    )
    return untried.length === 0
      ? []
      : [
          `${untried.length} of its keys (${String(kind)}) without a kid ${untried.length === 1 ? 'is' : 'are'} never tried, as a token is tried with ${Math.max(...tried.map(({ length }) => length))} of that kind: give each key a kid`,
        ]
  })
}

/** The keys that a token without a `kid` is tried with. */
function triedWith(alg: string, keys: readonly Key[]): Key[] {
  const tried: Key[] = []
  for (const key of keys.filter((each) => canSign(each, [alg]))) {
    if (areTooManyChecks([...tried, key].map((each) => checkCostUs(alg, each)))) break
    tried.push(key)
  }
  return tried
}

function canSign({ alg }: Key, names: readonly string[]): boolean {
  return alg === undefined || names.some((name) => name === alg)
}

/** The keys of a set that are objects: one that is malformed does not make the others useless (RFC 7517 section 5). */
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
