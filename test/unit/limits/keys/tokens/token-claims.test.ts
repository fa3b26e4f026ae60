import { createHmac, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { CompactSign, exportJWK, SignJWT, UnsecuredJWT, type JWK, type JWTHeaderParameters } from 'jose'
import { beforeEach, describe, expect, test } from 'vitest'
import { findTokens } from '../../../../../proxy/http/fields/json-web-tokens.ts'
import { type SentToken, TokenVerifier } from '../../../../../proxy/limits/keys/tokens/token-claims.ts'
import { collectGarbage } from '../../../../../shared/v8-gc.ts'

// The attack: a forged or altered token, which would count as another client's, or as nobody's.

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const other = generateKeyPairSync('rsa', { modulusLength: 2048 })
const elliptic = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const pem = rsa.publicKey.export({ type: 'spki', format: 'pem' })

async function keySetOf(...keys: [kid: string, key: KeyObject][]): Promise<string> {
  const jwks = await Promise.all(
    keys.map(async ([kid, key]): Promise<JWK> => ({ ...(await exportJWK(key)), kid })),
  )
  return JSON.stringify({ keys: jwks })
}

const startMs = 1_700_000_000_000
let nowMs = startMs
let text: string | undefined
let missing = 0
let outcomes: string[] = []

beforeEach(async () => {
  nowMs = startMs
  missing = 0
  outcomes = []
  text = await keySetOf(['one', rsa.publicKey], ['two', elliptic.publicKey])
})

type Options = { isSecret?: boolean; capacity?: number; claims?: string[]; conditionClaims?: string[] }

function create(options: Options = {}): TokenVerifier {
  return new TokenVerifier({
    keySet: { current: () => text, keyMissing: () => (missing += 1) },
    isSecret: false,
    issuer: 'https://issuer.example',
    audience: 'app',
    claims: ['sub', 'plan'],
    capacity: 3,
    telemetry: { tokenRead: (outcome) => void outcomes.push(outcome) },
    now: () => nowMs,
    ...options,
  })
}

const usual = { iss: 'https://issuer.example', aud: 'app', sub: 'alice' }

function sign(
  payload: object = {},
  key: KeyObject | Uint8Array = rsa.privateKey,
  header: { alg?: string; kid?: string | undefined } = {},
): Promise<string> {
  const seconds = startMs / 1000
  return new SignJWT({ ...usual, exp: seconds + 600, ...payload })
    .setProtectedHeader({ alg: 'RS256', kid: 'one', ...header } as JWTHeaderParameters)
    .sign(key)
}

/** A token in the form in which it is found in a header. */
function sent(token: string): SentToken {
  const dot = token.lastIndexOf('.')
  return { signed: token.slice(0, dot), signature: token.slice(dot + 1) }
}

async function subOf(verifier: TokenVerifier, token: string): Promise<string | undefined> {
  return (await verifier.claimsOf(sent(token)))?.get('sub')
}

test('a remembered token does not keep the request head in memory that it came in', async () => {
  text = 'a secret of thirty-two bytes, or more'
  const verifier = create({ isSecret: true, capacity: 1000 })
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const read = async (id: number): Promise<void> => {
    const signed = `${encode({ alg: 'HS256' })}.${encode({ ...usual, id })}`
    const signature = createHmac('sha256', text ?? '')
      .update(signed)
      .digest('base64url')
    const head = Buffer.from(`Authorization: Bearer ${signed}.${signature}\r\nCookie: ${'c'.repeat(14_000)}`)
    const value = head.toString('latin1').slice('Authorization: '.length).split('\r\n', 1)[0] ?? ''
    for (const token of findTokens(value)) expect((await verifier.claimsOf(token))?.get('sub')).toBe('alice')
  }
  await read(-1)
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  for (let id = 0; id < 500; id++) await read(id)
  collectGarbage()
  // 500 heads are 7 MB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(3_000_000)
  expect(verifier.readUse().size).toBe(501)
})

describe('a token that is verified', () => {
  test('a verified token returns only the claims that rules count by', async () => {
    const claims = await create().claimsOf(sent(await sign({ plan: 7, email: 'a@b.example' })))
    expect([...(claims ?? [])]).toEqual([
      ['sub', 'alice'],
      ['plan', '7'],
    ])
    expect(outcomes).toEqual(['verified'])
  })

  test.each<[string, () => Promise<string>]>([
    ['of another algorithm of the set', () => sign({}, elliptic.privateKey, { alg: 'ES256', kid: 'two' })],
    ['for several audiences', () => sign({ aud: ['x', 'app'] })],
    ['without an end', () => sign({ exp: undefined })],
    // Backends tolerate clock differences, and some accept such a token as new.
    ['expired', () => sign({ exp: startMs / 1000 - 1 })],
    ['long expired', () => sign({ exp: 1 })],
    ['not yet valid', () => sign({ nbf: startMs / 1000 + 60 })],
    ['from the future', () => sign({ iat: startMs / 1000 + 6000 })],
    ['that names no key', () => sign({}, rsa.privateKey, { kid: undefined })],
  ])('%s', async (_, make) => expect(await subOf(create(), await make())).toBe('alice'))

  test.each(['https:\\/\\/app.example\\/plan', '\\u0070lan', 'pl\\u00e4ne'])(
    'an escaped name of a claim is read, whatever objects others have sent: %s',
    async (escaped) => {
      const name = JSON.parse(`"${escaped}"`) as string
      // The attack: another name made of the same characters.
      JSON.parse(JSON.stringify({ ...usual, [escaped.slice(0, name.length)]: 1 }))
      const payload = `${JSON.stringify(usual).slice(0, -1)},"${escaped}":"gold"}`
      const token = await new CompactSign(Buffer.from(payload))
        .setProtectedHeader({ alg: 'RS256', kid: 'one' })
        .sign(rsa.privateKey)
      const claims = await create({ claims: [name] }).claimsOf(sent(token))
      expect(claims).toEqual(new Map([[name, 'gold']]))
    },
  )

  test.each([
    ['9007199254740993', '9007199254740993'],
    ['-9007199254740993', '-9007199254740993'],
    ['100002348117421473', '100002348117421473'],
    ['18446744073709551616', '18446744073709551616'],
    ['9007199254740991', '9007199254740991'],
    // A backend that reads whole numbers takes both for the same user.
    ['7.0', '7'],
    ['-0', '0'],
    ['1e3', '1000'],
    ['1e21', '1e+21'],
  ])('a claim that is a large number is not rounded: %s', async (sub, text) => {
    const payload = `{"iss":"https://issuer.example","aud":"app","sub":${sub},"exp":9223372036854775807}`
    const token = await new CompactSign(Buffer.from(payload))
      .setProtectedHeader({ alg: 'RS256', kid: 'one' })
      .sign(rsa.privateKey)
    const claims = await create({ conditionClaims: ['sub'] }).claimsOf(sent(token))
    expect(claims?.get('sub')).toBe(text)
    expect(claims?.details).toMatchObject({
      values: new Map([['sub', [text]]]),
      untilMs: 2 ** 63 * 1000,
    })
  })

  test('a verified token is read from the cache the second time', async () => {
    const verifier = create()
    const token = await sign()
    await verifier.claimsOf(sent(token))
    expect(verifier.claimsOf(sent(token))).toEqual(new Map([['sub', 'alice']]))
    nowMs += 299_999
    expect(verifier.claimsOf(sent(token))).toEqual(new Map([['sub', 'alice']]))
  })

  test('a token that several requests send at once is verified once', async () => {
    const verifier = create()
    const token = sent(await sign())
    const first = verifier.claimsOf(token)
    expect(verifier.claimsOf(token)).toBe(first)
    expect(await first).toEqual(new Map([['sub', 'alice']]))
    expect(outcomes).toEqual(['verified'])
  })

  test('a verified token is read from the cache whatever follows its signature', async () => {
    const verifier = create()
    const { signed, signature } = sent(await sign())
    for (const tail of ['', 'A', 'AAAA', signature])
      expect(await verifier.claimsOf({ signed, signature: signature + tail })).toEqual(
        new Map([['sub', 'alice']]),
      )
    expect(verifier.readUse().size).toBe(1)
    expect(verifier.claimsOf({ signed, signature: `${signature}B` })).toBeInstanceOf(Map)
  })

  test('a token is verified again after five minutes, and after a change of the key set', async () => {
    const verifier = create()
    const token = await sign()
    await verifier.claimsOf(sent(token))
    nowMs += 300_000
    const again = verifier.claimsOf(sent(token))
    expect(again).toBeInstanceOf(Promise)
    await again
    expect(verifier.claimsOf(sent(token))).toBeInstanceOf(Map)
    text = await keySetOf(['one', other.publicKey])
    expect(await verifier.claimsOf(sent(token))).toBeUndefined()
  })

  test('a verified token that is removed after its five minutes is not counted as an eviction', async () => {
    const verifier = create()
    const tokens = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((sub) => sign({ sub })))
    for (const token of tokens.slice(0, 3)) await verifier.claimsOf(sent(token))
    nowMs += 300_000
    for (const token of tokens.slice(3, 6)) await verifier.claimsOf(sent(token))
    expect(verifier.readUse()).toEqual({ size: 3, capacity: 3, evictions: 0 })
    await verifier.claimsOf(sent(tokens[6] ?? ''))
    expect(verifier.readUse()).toEqual({ size: 3, capacity: 3, evictions: 1 })
  })

  test('the cache evicts verified tokens when it is full', async () => {
    const verifier = create()
    const tokens = await Promise.all(['a', 'b', 'c', 'd'].map((sub) => sign({ sub })))
    for (const token of tokens) await verifier.claimsOf(sent(token))
    expect(verifier.readUse()).toEqual({ size: 3, capacity: 3, evictions: 1 })
    expect(verifier.claimsOf(sent(tokens[3] ?? ''))).toBeInstanceOf(Map)
    const again = verifier.claimsOf(sent(tokens[0] ?? ''))
    expect(again).toBeInstanceOf(Promise)
    await again
  })
})

describe('a token that cannot be verified is ignored', () => {
  const hmac = (key: string): string => {
    const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const signed = `${encode({ alg: 'HS256', kid: 'one' })}.${encode({ ...usual, exp: startMs / 1000 + 600 })}`
    return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`
  }
  test.each<[string, () => Promise<string> | string]>([
    ['alg: none', () => new UnsecuredJWT(usual).encode()],
    [
      'alg: None, by hand',
      () =>
        `${Buffer.from('{"alg":"None"}').toString('base64url')}.${Buffer.from(JSON.stringify(usual)).toString('base64url')}.`,
    ],
    ['the public key as a secret, PEM', () => hmac(pem)],
    [
      'the public key as a secret, DER',
      () => hmac(rsa.publicKey.export({ type: 'spki', format: 'der' }).toString('latin1')),
    ],
    ['an empty secret', () => hmac('')],
    ['a key of somebody else', () => sign({}, other.privateKey)],
    [
      'changed content',
      async () =>
        (await sign()).replace(
          /\.[^.]+\./,
          `.${Buffer.from(JSON.stringify({ ...usual, sub: 'bob' })).toString('base64url')}.`,
        ),
    ],
    ['no signature', async () => (await sign()).replace(/[^.]+$/, '')],
    ['expired, of another audience', () => sign({ exp: 1, aud: 'other' })],
    ['another issuer', () => sign({ iss: 'https://other.example' })],
    ['no issuer', () => sign({ iss: undefined })],
    ['another audience', () => sign({ aud: 'other' })],
    ['no audience', () => sign({ aud: undefined })],
    ['nonsense', () => 'a.b.c'],
    ['one word', () => 'token'],
    ['nothing in it', () => '..'],
  ])('%s', async (_, make) => {
    expect(await create().claimsOf(sent(await make()))).toBeUndefined()
    expect(outcomes).toEqual(['invalid'])
    expect(missing).toBe(0)
  })

  test('an unknown key, which causes a reload of the key set', async () => {
    expect(await create().claimsOf(sent(await sign({}, other.privateKey, { kid: 'new' })))).toBeUndefined()
    expect([outcomes, missing]).toEqual([['unknown-key'], 1])
    // The key with that `kid` is for another algorithm.
    expect(await create().claimsOf(sent(await sign({}, rsa.privateKey, { kid: 'two' })))).toBeUndefined()
  })

  test('a token that was rejected is not verified again', async () => {
    const verifier = create()
    const token = sent(await sign({}, other.privateKey))
    expect(verifier.claimsOf(token)).toBeInstanceOf(Promise)
    await verifier.claimsOf(token)
    expect(verifier.claimsOf(token)).toBeUndefined()
    text = await keySetOf(['one', other.publicKey])
    expect(await verifier.claimsOf(token)).toEqual(new Map([['sub', 'alice']]))
  })

  test('no key set, or an invalid one', async () => {
    const token = await sign()
    text = undefined
    expect(await create().claimsOf(sent(token))).toBeUndefined()
    text = '{"keys":[7]}'
    expect(await create().claimsOf(sent(token))).toBeUndefined()
    expect(outcomes).toEqual(['no-keys', 'no-keys'])
  })

  test('a malformed key of the set, which hides no other', async () => {
    const { keys } = JSON.parse(text ?? '') as { keys: JWK[] }
    for (const other of [5, null, {}, [], true, ''])
      for (const kid of ['one', other, undefined]) {
        const malformed = [other, { kty: 'RSA', e: 'AQAB', n: other, kid }, { kty: other, crv: other, kid }]
        text = JSON.stringify({ keys: [...malformed, ...keys.map((key) => ({ ...key, kid }))] })
        expect(await subOf(create(), await sign({}, rsa.privateKey, { kid: 'one' }))).toBe(
          kid === 'one' || kid === undefined ? 'alice' : undefined,
        )
      }
  })

  test('a claim that is a list, an object, or of every object', async () => {
    const verifier = create()
    for (const sub of [['a'], { a: 1 }, null, true])
      expect(await verifier.claimsOf(sent(await sign({ sub })))).toEqual(
        sub === null ? expect.anything() : new Map(),
      )
  })
})

describe('a set whose keys, or a token that, have no name', () => {
  const withoutKid = (set: string): string => set.replaceAll(/,?"kid":"[^"]*"/g, '')

  test.each<[string, boolean, string | undefined]>([
    ['neither has one', true, undefined],
    ['the token has one', true, 'one'],
    ['the keys have one', false, undefined],
  ])('a token is verified by each key that fits: %s', async (_, isNameless, kid) => {
    const set = await keySetOf(['zero', other.publicKey], ['one', rsa.publicKey], ['two', elliptic.publicKey])
    text = isNameless ? withoutKid(set) : set
    const verifier = create()
    expect(await subOf(verifier, await sign({}, rsa.privateKey, { kid }))).toBe('alice')
    expect(await subOf(verifier, await sign({}, other.privateKey, { kid }))).toBe('alice')
    expect(await subOf(verifier, await sign({}, elliptic.privateKey, { kid, alg: 'ES256' }))).toBe('alice')
    const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 })
    expect(await subOf(verifier, await sign({}, stranger.privateKey, { kid }))).toBeUndefined()
  })

  test('a token is verified by a key after a large one that encrypts', async () => {
    const keys = await Promise.all([other.publicKey, rsa.publicKey].map((key) => exportJWK(key)))
    const large = { kty: 'RSA', use: 'enc', e: 'AQAB', n: Buffer.alloc(2048, 0x80).toString('base64url') }
    text = JSON.stringify({ keys: [keys[0], large, keys[1]] })
    expect(await subOf(create(), await sign({}, rsa.privateKey, { kid: undefined }))).toBe('alice')
  })

  test('a token is verified by a key after one that is too large to be used', async () => {
    const keys = await Promise.all([other.publicKey, rsa.publicKey].map((key) => exportJWK(key)))
    const large = { kty: 'RSA', kid: 'large', e: 'AQAB', n: Buffer.alloc(2048, 0x81).toString('base64url') }
    text = JSON.stringify({ keys: [keys[0], large, keys[1]] })
    expect(await subOf(create(), await sign({}, rsa.privateKey, { kid: undefined }))).toBe('alice')
    expect(await subOf(create(), await sign({}, rsa.privateKey, { kid: 'large' }))).toBeUndefined()
    expect(outcomes).toEqual(['verified', 'unknown-key'])
  })

  test('the key set is loaded again when none of its keys fits, as the key may be new', async () => {
    text = await keySetOf(['one', rsa.publicKey])
    await create().claimsOf(sent(await sign({}, other.privateKey, { kid: undefined })))
    expect(missing).toBe(1)
  })
})

describe('a shared secret', () => {
  const secret = 'a secret of thirty-two bytes, at least'
  test('a shared secret verifies tokens made with it, and no others', async () => {
    text = secret
    const verifier = create({ isSecret: true })
    expect(await subOf(verifier, await sign({}, Buffer.from(secret), { alg: 'HS256' }))).toBe('alice')
    expect(await subOf(verifier, await sign({}, Buffer.from(`${secret}.`), { alg: 'HS256' }))).toBeUndefined()
    expect(await subOf(verifier, await sign())).toBeUndefined()
    expect(await subOf(verifier, new UnsecuredJWT(usual).encode())).toBeUndefined()
  })
})
