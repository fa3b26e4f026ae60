import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findTokens } from '../../proxy/http/fields/json-web-tokens.ts'
import { credentialKeys, tokenKeys } from '../../proxy/limits/keys/credentials/credential-keys.ts'
import { MAX_READINGS } from '../../proxy/limits/keys/partition-key.ts'
import { known, spell, unicodeBlanks } from '../backends/credentials/spellings.ts'
import { leastTimeSync, threadCpuUs } from '../support/load/least-time.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { runs } from '../support/random/runs.ts'

// The attack: one credential in countless spellings, each counted as another client. `npm run test:backends` asks real libraries which
// spellings they accept; this file has the most lenient readings, in a few lines each.

type Reader = (value: string) => string | undefined

const skipOthers = (text: string): string => text.replace(/[^A-Za-z0-9+/]/g, '')
const contentOf = (word = ''): string | undefined => /^[\w-]+\.[\w-]+(?=\.)/.exec(word)?.[0]
/** A name for the token that a word is. Its header and payload alone are another word, without a signature. */
const tokenIn = (word: string | undefined): string | undefined => {
  const content = contentOf(word)
  return content && `the token ${content}`
}
const utf8 = (bytes: string): string => Buffer.from(bytes, 'latin1').toString()
const blanksOfGo = /\p{White_Space}+/u
const trimmedByGo = (text: string): string => text.replace(/^\p{White_Space}+|\p{White_Space}+$/gu, '')
const decoded = (text: string): string => Buffer.from(text, 'base64').toString()

const readers: Readonly<Record<string, Reader>> = {
  'the second word': (value) => value.split(' ')[1],
  'the second word, with any blanks': (value) => /(\S+)\s+(\S+)/.exec(value)?.[2],
  "the second word, as Go's strings.Fields finds it": (value) =>
    utf8(value)
      .split(blanksOfGo)
      .filter((word) => word !== '')[1],
  "the text after Bearer, as Go's strings.TrimSpace leaves it": (value) =>
    trimmedByGo(utf8(value).replace(/^Bearer /, '')),
  "a token after Bearer, as Go's strings.TrimSpace leaves it": (value) =>
    tokenIn(trimmedByGo(utf8(value).replace(/^Bearer/, ''))),
  'the last word': (value) => value.split(/\s+/).at(-1),
  'a token in the second word': (value) => tokenIn(value.split(' ')[1]),
  'a token after Bearer': (value) => tokenIn(/bearer\s+(\S+)/i.exec(value)?.[1]),
  'a token in the text left without Bearer': (value) => tokenIn(value.replace('Bearer ', '')),
  "the text left by Python's replace": (value) => value.replaceAll('Bearer ', ''),
  "the text left by PHP's str_ireplace": (value) => value.replaceAll(/bearer/gi, '').trim(),
  "a token in the text left by Python's replace": (value) => tokenIn(value.replaceAll('Bearer ', '')),
  "user and password in the text left by Java's replace": (value) =>
    /^basic /i.test(value) ? decoded(skipOthers(value.replaceAll('Basic ', ''))) : undefined,
  "the token that Laravel's bearerToken returns": (value) =>
    /^[^]*Bearer ([^]*)/.exec(value)?.[1]?.split(',')[0],
  'the token that Rails reads': (value) =>
    /^(?:Token|Bearer)\s+([^]*)/
      .exec(value)?.[1]
      ?.split(/[,;\t]\s*/)
      .find((piece) => piece !== ''),
  'user and password as PHP reads them': (value) =>
    /^basic /i.test(value) ? decoded(skipOthers(value.slice(6))).split('\0')[0] : undefined,
  'user and password of any scheme': (value) => decoded(value.split(' ')[1] ?? ''),
}

const usual = known.map(({ scheme, word, client }) => {
  const [key = ''] = credentialKeys(`${scheme} ${word}`)
  return { key, reads: new Set([scheme === 'Basic' ? client : (tokenIn(word) ?? word)]) }
})

describe('credentials', () => {
  test('a value that looks like a token in more than eight places is rejected, as each look takes some microseconds', () => {
    const lookAlikes = (count: number): string => 'eyJ'.repeat(count).padEnd(20, '!')
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 8 }), (each, words) => {
        const value = `Bearer ${`${lookAlikes(each)}.x.`.repeat(words)}`
        expect(credentialKeys(value).length > MAX_READINGS).toBe(each * words > 8)
      }),
    )
  })

  test.each(Object.entries(readers))(
    'credentials that are the same to a backend have a key in common: %s',
    (_, read) => {
      fc.assert(
        fc.property(fc.integer(), (seed) => {
          const value = spell(seededRandom(seed))
          const client = usual.find(({ reads }) => reads.has(read(value) ?? ''))
          if (!client) return
          const keys = credentialKeys(value)
          if (keys.length <= MAX_READINGS) expect(keys, value).toContain(client.key)
        }),
        { numRuns: runs(2000) },
      )
    },
  )

  test.each([
    ["Python's split", ['\xa0', '\x85', ' ', '\t']],
    ["Go's strings.Fields", ['\xc2\xa0', '\xe3\x80\x80', ' ', '\t']],
  ])('words count whatever blanks are around them: %s', (_, blanks) => {
    const around = fc.string({ unit: fc.constantFrom(...blanks), maxLength: 3 })
    const between = fc.string({ unit: fc.constantFrom(...blanks), minLength: 1, maxLength: 3 })
    const scheme = fc.constantFrom('Bearer', 'ApiKey', 'Own', 'X-Own')
    fc.assert(
      fc.property(around, scheme, between, around, (before, name, middle, after) => {
        const keys = credentialKeys(`${before}${name}${middle}key-7${after}`)
        expect(keys).toEqual(expect.arrayContaining([...credentialKeys(`${name} key-7`)]))
      }),
      { numRuns: runs(500) },
    )
  })

  test('credentials in their usual spelling have one key each, all different', () => {
    const keys = known.map(({ scheme, word }) => credentialKeys(`${scheme} ${word}`))
    for (const each of keys) expect(each).toHaveLength(1)
    expect(new Set(keys.flat()).size).toBe(known.length)
  })

  test.each([
    'Digest username="Mufasa", realm="a@b", nonce="7", uri="/", qop=auth, nc=1, cnonce="0a", response="6629", opaque="5ccc"',
    'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=5d672d79',
    'OAuth oauth_consumer_key="a", oauth_token="b", oauth_signature="c"',
    'Negotiate YIIJvwYGKwYBBQUCoIIJszCCCa+gMDAuBgkqhkiC9xIBAgI',
    'Bearer sk-proj-0123456789abcdefghijklmnopqrstuvwxyz-_ABCDEFGHIJ',
    'token ghp_0123456789abcdefghijklmnopqrstuvwxyz',
    'Token token="abc", nonce="7"',
    'Token token=abc',
    'Digest username="a", realm="My Basic Auth for all", response="6629"',
    'SharedAccessSignature sr=a&sig=b&se=1&skn=c',
  ])('credentials of other schemes have one key: %s', (value) =>
    expect(credentialKeys(value)).toHaveLength(1),
  )

  test('credentials of different clients have no key in common', () => {
    const word = fc.string({
      unit: fc.constantFrom(...Array.from('abcXYZ019-._~')),
      minLength: 1,
      maxLength: 39,
    })
    const value = fc.tuple(
      fc.constantFrom('Bearer', 'Token', 'ApiKey'),
      word.filter((w) => /\w/.test(w)),
    )
    fc.assert(
      fc.property(value, value, (one, other) => {
        fc.pre(one[1] !== other[1])
        const keys = new Set(credentialKeys(one.join(' ')))
        expect(credentialKeys(other.join(' ')).some((key) => keys.has(key))).toBe(false)
      }),
      { numRuns: runs(2000) },
    )
  })

  test('a key in another header is one with any blanks around it', () => {
    fc.assert(
      fc.property(fc.integer(), fc.constantFrom('', ' ', '\t', '\xa0', '\x85'), (seed, single) => {
        const random = seededRandom(seed)
        const around = (): string => unicodeBlanks(random) + single
        expect(tokenKeys(`${around()}key-7${around()}`)).toEqual(['key-7'])
      }),
      { numRuns: runs(500) },
    )
  })

  test('a token in another header has one key in every spelling', () => {
    const token = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl'
    const [key = ''] = tokenKeys(token)
    for (const spelling of [`${token}!~`, `${token}==junk`, `Bearer ${token}`, `${token} word`, `!${token}`])
      expect(tokenKeys(spelling)).toContain(key)
    const long = 'gAAAAABmZmZm-_abcdefghijklmnopqrstuvwxyz0123456789-_'
    expect(tokenKeys(long.replace('m', 'm!~'))).toEqual(tokenKeys(long))
    expect(tokenKeys('short!key')).not.toEqual(tokenKeys('shortkey'))
  })

  test('equal credentials have a key in common however many others stand before or after them, or are rejected', () => {
    const tokenOf = (payload: object): string =>
      [{ alg: 'HS256' }, payload, 'signature']
        .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
        .join('.')
    const token = tokenOf({ sub: 'client' })
    const content = contentOf(token) ?? ''
    const hasToken = (keys: readonly string[]): boolean => keys.some((key) => key.endsWith(content))
    const other = fc.oneof(
      fc.nat().map((n) => tokenOf({ sub: String(n) })),
      fc.nat().map((n) => `eyJ${n}`.padEnd(20, 'eyJ') + '.a.b'),
    )
    const others = fc.array(other, { maxLength: 40 })
    const separator = fc.constantFrom(' ', ', ', '.', '\t')
    fc.assert(
      fc.property(others, others, separator, (before, after, between) => {
        const value = [...before, token, ...after].join(between)
        for (const keys of [credentialKeys(`Bearer ${value}`), tokenKeys(value)])
          if (keys.length <= MAX_READINGS) expect(keys).toSatisfy(hasToken)
      }),
      { numRuns: runs(300) },
    )
  })

  test('a token has its key and its claims whatever stands directly before it', () => {
    const token = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl'
    const [key] = credentialKeys(`Bearer ${token}`)
    const before = fc.string({ unit: fc.constantFrom(...Array.from(',;xaeyJw.=\x85\xa0')), maxLength: 60 })
    fc.assert(
      fc.property(fc.constantFrom('', 'Bearer ', 'xxxxxxxxxxxbearer'), before, (scheme, prefix) => {
        const value = `${scheme}${prefix}${token}`
        const keys = credentialKeys(value)
        if (keys.length > MAX_READINGS) return
        expect(keys, value).toContain(key)
        expect(
          findTokens(value).map(({ signed }) => signed),
          value,
        ).toContain(contentOf(token))
      }),
      { numRuns: runs(1000) },
    )
    for (const prefix of [','.repeat(17), ',;'.repeat(500), 'x'.repeat(17), 'xxxxxxxxxxxbearer'])
      expect(credentialKeys(`Bearer ${prefix}${token}`)).toContain(key)
  })

  test('a credential with the names of schemes in it has the key of the text without them', () => {
    for (const [value, word] of [
      ['Bearer sk-12Bearer 34', 'sk-1234'],
      ['sk-1Bearer 2Bearer 34', 'sk-1234'],
      ['bearer sk-12BEARER 34', 'sk-1234'],
      ['Bearer sk-12Bearer34', 'sk-1234'],
      ['Token sk-12Token 34', 'sk-1234'],
      ['Bearer Bearersk-1234', 'sk-1234'],
      ['Bearer sk-1234Bearer', 'sk-1234'],
      ['Bearersk-1234', 'sk-1234'],
    ] as const)
      expect(credentialKeys(value), value).toContain(`Bearer ${word}`)
    for (const value of [
      'Bearer Bearer a',
      'Bearer a, Bearer b',
      'Bearer a, Basic Yjpj',
      'Token token="abc", nonce="7"',
    ])
      expect(credentialKeys(value).filter((key) => /(?:bearer|basic|token)$/i.test(key))).toEqual([])
  })

  test.each([
    'Bearer SECRET,1',
    'Bearer SECRET;1, x',
    'Bearer ,;SECRET,token=x1',
    'Bearer ,\tSECRET,x y',
    'Bearer SECRET,token=x1',
    'Bearer SECRET, token=x1',
    'SECRET,1',
    '1234567SECRET',
    '12345 7SECRET',
    'JWT 123SECRET',
    'x Bearer SECRET,1 y',
    'a b xBearer SECRET,1 y',
    'Digest username=a, Bearer SECRET, username=1',
    'Digest username=a, xBearer SECRET;1, username=1',
  ])('%s has the key of Bearer SECRET', (form) => {
    const secret = '1|aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6kL9n'
    const [key] = credentialKeys(`Bearer ${secret}`)
    expect(credentialKeys(form.replace('SECRET', secret))).toContain(key)
  })

  test('a UUID as a token has one key in every spelling', () => {
    const uuid = '550e8400-e29b-41d4-a716-446655440000'
    const [key] = credentialKeys(`Bearer ${uuid}`)
    for (const spelling of [
      uuid.toUpperCase(),
      uuid.replaceAll('-', ''),
      `{${uuid}}`,
      `urn:uuid:${uuid}`,
      `URN:UUID:${uuid}`,
    ])
      for (const value of [`Bearer ${spelling}`, spelling, `Bearer ${spelling},1`, `x y ${spelling}`])
        expect(credentialKeys(value), value).toContain(key)
    expect(credentialKeys(`Bearer ${uuid}`)).toHaveLength(1)
  })

  const bytesOf = (length: number, seed: number): Buffer => Buffer.alloc(length, `${seed}-\xff\x80`, 'latin1')
  test.each([
    ['Fernet', Buffer.concat([Buffer.of(0x80, 0, 0, 0, 0), bytesOf(68, 7)]).toString('base64url')],
    [
      'an encrypted JSON Web Token',
      `eyJhbGciOiJkaXIiLCJlbmMiOiJBMTI4R0NNIn0..${bytesOf(12, 1).toString('base64url')}.${bytesOf(31, 2).toString('base64url')}.${bytesOf(16, 3).toString('base64url')}`,
    ],
  ])('a credential has one key whatever the unused bits of its last character are: %s', (_, token) => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const at = alphabet.indexOf(token.slice(-1))
    const [key] = credentialKeys(`Bearer ${token}`)
    for (let bits = 0; bits < 16; bits++) {
      const spelled = `${token.slice(0, -1)}${alphabet[(at & ~15) | bits] ?? ''}`
      for (const value of [spelled, `${spelled}==`, `${spelled}==junk`, spelled.replace('A', 'A!')]) {
        expect(credentialKeys(`Bearer ${value}`), value).toContain(key)
        expect(tokenKeys(value), value).toContain(tokenKeys(token)[0])
      }
    }
    expect(credentialKeys(`Bearer ${token}==`)).toHaveLength(1)
  })

  test('long tokens that differ in the last character have different keys', () => {
    const token = `tenant-of-a-long-name-with-many-letters-01`
    expect(credentialKeys(`Bearer ${token}1`)).not.toEqual(credentialKeys(`Bearer ${token}2`))
    expect(credentialKeys(`Bearer ${token}`)).not.toEqual(credentialKeys(`Bearer ${token.slice(0, -1)}2`))
  })

  test('of more than 4 KB are rejected unless they are one or two words', () => {
    const long = 'a'.repeat(5000)
    expect(credentialKeys(`Negotiate ${long}`)).toEqual([`Bearer ${long}`])
    expect(credentialKeys(`Digest ${'a=b, '.repeat(800)}`).length).toBeLessThanOrEqual(MAX_READINGS)
    for (const value of [`Digest ${'a=b, '.repeat(1000)}`, `Bearer  ${long}`, `Bearer ${long} x`])
      expect(credentialKeys(value).length).toBeGreaterThan(MAX_READINGS)
  })

  test('credentials are read in a time that grows with their length', () => {
    const header = 'eyJhbGciOiJIUzI1NiJ9.'
    for (const piece of [
      ' ',
      'a ',
      'token=',
      ',',
      'a.',
      '=',
      '\xa0',
      'e',
      'eyJ',
      header,
      `${header}e30.`,
      'bearer a ',
      'a=b ',
      'Zm9vOmJhcg== ',
    ])
      for (const form of [
        (text: string) => `Basic ${text}`,
        (text: string) => `Bearer a${text}b`,
        (text: string) => text,
        (text: string) => `${header}${text}`,
      ]) {
        const value = form(piece.repeat(16_000 / piece.length))
        const read = (): void => {
          credentialKeys(value)
          tokenKeys(value)
        }
        // This takes some milliseconds; a quadratic step would take a second.
        expect(
          leastTimeSync(200_000, () => threadCpuUs(read)),
          form(piece),
        ).toBeLessThan(200_000)
      }
  })
})
