import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readPart } from '../../../proxy/limits/keys/part-values.ts'
import { partitionKeysOf } from '../../../proxy/limits/keys/partition-key.ts'
import { createAddressReader } from '../../../proxy/request/addresses/client-address.ts'
import { readTarget } from '../../../proxy/request/target/target.ts'
import type { Policy } from '../../../proxy/policy.ts'
import type { PartitionPart, SinglePart } from '../../../proxy/policy/partition.ts'

const ip: SinglePart = { kind: 'ip' }
const header = (name: string): SinglePart => ({ kind: 'header', name })
const client = { address: '2001:db8::5', prefix: '2001:db8::/64' }

function keyOf(
  partition: readonly PartitionPart[],
  headers: IncomingHttpHeaders = {},
  by: { address: string; prefix: string } = client,
  host = 'a.example',
): string | undefined {
  const [key, ...others] = keysOf(partition, headers, by, host)
  expect(others).toEqual([])
  return key
}

function keysOf(
  partition: readonly PartitionPart[],
  headers: IncomingHttpHeaders = {},
  by = client,
  host = 'a',
): readonly string[] {
  const policy: Policy = {
    name: 'p',
    quota: 1,
    windowMs: 1000,
    algorithm: 'fixed',
    mode: 'enforce',
    onStoreError: 'local',
    partition,
  }
  const target = readTarget('GET', '/')
  if (typeof target === 'string') throw new Error(target)
  const source = { client: by, host, target, claims: undefined, headers, addresses: createAddressReader([]) }
  return partitionKeysOf(policy, (part) => readPart(part, source))
}

describe('a partition key', () => {
  test('a key by address alone is the address as text', () => {
    expect(keyOf([ip])).toBe('2001:db8::/64')
    expect(keyOf([ip], {}, { address: '203.0.113.7', prefix: '203.0.113.7' })).toBe('203.0.113.7')
  })

  test.each([
    ['203.0.113.7', '203.0.113.0/24'],
    ['203.0.113.255', '203.0.113.0/24'],
    ['203.0.114.7', '203.0.114.0/24'],
    ['2001:db8:1:2::5', '2001:db8:1::/48'],
    ['2001:db8:2::', '2001:db8:2::/48'],
  ])('by the network of %s alone is %s, whatever ipv6Prefix is', (address, network) => {
    const part: SinglePart = { kind: 'network', ipv4: 24, ipv6: 48 }
    const by = { address, prefix: 'of ipv6Prefix' }
    expect(keyOf([part], {}, by)).toBe(network)
    expect(keyOf([{ kind: 'first', of: [header('x-key'), part] }], {}, by)).toBe(network)
    expect(keyOf([part, header('x-key')], { 'x-key': 'a' }, by)).toMatch(/^h:/)
  })

  test('a key by network is the same for addresses with the same leading bits', () => {
    const octets = fc.tuple(...Array.from({ length: 4 }, () => fc.constantFrom(0, 1, 127, 128, 255)))
    fc.assert(
      fc.property(octets, octets, fc.integer({ min: 8, max: 32 }), (one, other, ipv4) => {
        const part: SinglePart = { kind: 'network', ipv4, ipv6: 48 }
        const [a, b] = [one, other].map((each) => keyOf([part], {}, { address: each.join('.'), prefix: '' }))
        const bitsOf = (each: readonly number[]): string =>
          each.map((octet) => octet.toString(2).padStart(8, '0')).join('')
        expect(a === b).toBe(bitsOf(one).slice(0, ipv4) === bitsOf(other).slice(0, ipv4))
      }),
    )
    const groups = fc.array(fc.constantFrom(0, 1, 0x7fff, 0x8000, 0xffff), { minLength: 8, maxLength: 8 })
    fc.assert(
      fc.property(groups, groups, fc.integer({ min: 16, max: 128 }), (one, other, ipv6) => {
        const part: SinglePart = { kind: 'network', ipv4: 24, ipv6 }
        const [a, b] = [one, other].map((each) =>
          keyOf([part], {}, { address: each.map((group) => group.toString(16)).join(':'), prefix: '' }),
        )
        const bitsOf = (each: readonly number[]): string =>
          each.map((group) => group.toString(2).padStart(16, '0')).join('')
        expect(a === b).toBe(bitsOf(one).slice(0, ipv6) === bitsOf(other).slice(0, ipv6))
      }),
    )
  })

  test('a key by a header is a hash, as the header may be a secret', () => {
    const hash = createHash('sha256').update('3:k-1').digest('base64url')
    expect(keyOf([header('x-api-key')], { 'x-api-key': 'k-1' })).toBe(`h:${hash.slice(0, 22)}`)
  })

  test.each<[partition: PartitionPart[], headers: IncomingHttpHeaders]>([
    [[header('x-api-key')], {}],
    [[header('x-api-key')], { 'x-api-key': '' }],
    [[header('x-api-key')], { 'x-api-key': undefined }],
    [[header('set-cookie')], { 'set-cookie': [] }],
    [[ip, header('x-api-key')], { 'x-other': 'a' }],
    [[header('a'), header('b')], { a: '1' }],
    [[header('x-api-key')], { 'x-api-key': ' \t' }],
    [[header('authorization')], { authorization: ' ' }],
    // Every object inherits a property with these names.
    [[header('constructor')], {}],
    [[header('__proto__')], {}],
    [[header('tostring')], {}],
  ])('%# %j is undefined without its header: %j', (partition, headers) => {
    expect(keyOf(partition, headers)).toBeUndefined()
  })

  test('a key by the header __proto__ or constructor reads the header, not the prototype of the object', () => {
    const headers = Object.defineProperty({}, '__proto__', {
      value: 'a',
      enumerable: true,
    }) as IncomingHttpHeaders
    expect(keyOf([header('__proto__')], headers)).toBe(keyOf([header('x')], { x: 'a' }))
    expect(keyOf([header('constructor')], { constructor: 'a' })).toMatch(/^h:/)
  })

  test('several lines of a header are one value', () => {
    expect(keyOf([header('set-cookie')], { 'set-cookie': ['a', 'b'] })).toBe(
      keyOf([header('x')], { x: 'a, b' }),
    )
  })

  test('keys with several parts differ even if the joined texts are equal', () => {
    const two = [header('a'), header('b')]
    const keys = [
      ['a:b', 'c'],
      ['a', 'b:c'],
      ['a:', 'b:c'],
      ['ab', 'c'],
      ['a', 'bc'],
      ['1:a', '1:b'],
      ['1', '1:a1:b'],
      ['a1:b', 'c'],
    ].map(([a, b]) => keyOf(two, { a, b }))
    expect(new Set(keys).size).toBe(keys.length)
  })

  test('a key by address and header is a single hash, which differs if either differs', () => {
    const parts = [ip, header('x-api-key')]
    const other = { address: '203.0.113.7', prefix: '203.0.113.7' }
    const keys = [
      keyOf(parts, { 'x-api-key': 'a' }),
      keyOf(parts, { 'x-api-key': 'b' }),
      keyOf(parts, { 'x-api-key': 'a' }, other),
      keyOf(parts, { 'x-api-key': 'b' }, other),
    ]
    expect(new Set(keys).size).toBe(4)
    for (const key of keys) expect(key).toMatch(/^h:[\w-]{22}$/)
  })

  test('a partition key is the same for the same list of values and differs for any other, and is never an address', () => {
    const value = fc
      .string({
        unit: fc.constantFrom('a', 'b', ':', '1', '2', ',', ' '),
        minLength: 1,
        maxLength: 6,
      })
      .filter((text) => text.trim() !== '')
    const values = fc.tuple(value, value, value)
    const trimmed = (texts: readonly string[]): string => JSON.stringify(texts.map((text) => text.trim()))
    const keyFor = ([a, b, c]: readonly string[]): string | undefined =>
      keyOf([header('a'), header('b'), header('c')], { a, b, c })
    fc.assert(
      fc.property(values, values, (one, other) => {
        expect(keyFor(one) === keyFor(other)).toBe(trimmed(one) === trimmed(other))
        expect(keyFor(one)).toMatch(/^h:[\w-]{22}$/)
      }),
      { numRuns: 1000 },
    )
  })

  test.each<[name: string, spellings: string[]]>([
    ['x-api-key', ['k-1', ' k-1', 'k-1\t ']],
    [
      'authorization',
      ['Bearer tok', 'bearer tok', 'BEARER  \ttok ', 'Bearer\xa0tok', 'Bearer tok x', 'Bearer tok, x'],
    ],
    ['authorization', ['Token tok', 'token tok', 'Token token="tok"', 'token nonce=7, token=tok;x=y']],
    ['cf-connecting-ip', ['203.0.113.7', ' 203.0.113.7', '::ffff:203.0.113.7', '203.0.113.7:80']],
    ['true-client-ip', ['2001:db8::1', '2001:DB8:0::2', '[2001:db8::ffff]:1']],
  ])('by %s is one for %j', (name, spellings) => {
    const [usual = '', ...others] = spellings
    const key = keyOf([header(name)], { [name]: usual })
    // If backends read another word as the token, that word has a key too.
    for (const value of others) expect(keysOf([header(name)], { [name]: value }), value).toContain(key)
  })

  test('a key by host is the same for every spelling of a host', () => {
    const keys = (hosts: string[]): Set<string | undefined> =>
      new Set(hosts.map((host) => keyOf([{ kind: 'host' }], {}, client, host)))
    expect(
      keys(['app.example', 'APP.Example', 'app.example.', 'app.example:8080', 'app.example.:80']).size,
    ).toBe(1)
    expect(keys(['[2001:db8::1]', '[2001:DB8:0::1]:80']).size).toBe(1)
    expect(keys(['1.2.3.4', '1.2.3.4:80', '[::ffff:1.2.3.4]', '[::ffff:102:304]:1']).size).toBe(1)
    expect(keys(['a', 'a.b', 'ab', 'a-b', 'a_b', '.', '..a', '1.2.3.4', '1.2.3', '[::1]']).size).toBe(10)
    for (const key of keys(['a', '.'])) expect(key).toMatch(/^h:[\w-]{22}$/)
  })

  test('by the first of several has a key for each that the client sends, else for a part that every request has', () => {
    const first: PartitionPart = { kind: 'first', of: [header('x-api-key'), header('x-session'), ip] }
    const byKey = keyOf([first], { 'x-api-key': 'a' })
    const bySession = keyOf([first], { 'x-session': 'b' })
    expect(keysOf([first], { 'x-api-key': ' a', 'x-session': 'b' })).toEqual([byKey, bySession])
    expect(byKey).toMatch(/^h:/)
    expect(keyOf([first], { 'x-session': 'a' })).not.toBe(byKey)
    expect(keyOf([first], { 'x-api-key': '' })).toBe('2001:db8::/64')
    expect(keyOf([first])).toBe('2001:db8::/64')
    expect(keyOf([{ kind: 'first', of: [header('x-api-key'), { kind: 'global' }] }])).toBe('global')
    expect(keyOf([{ kind: 'first', of: [header('x-api-key'), header('x-session')] }])).toBeUndefined()
  })

  test('a key by the first of several does not confuse equal values of different parts', () => {
    const first: PartitionPart = { kind: 'first', of: [header('a'), header('b'), ip] }
    for (const partition of [[first], [first, header('c')]]) {
      const keys = [{ a: '2001:db8::/64' }, { b: '2001:db8::/64' }, {}, { a: 'b=2001:db8::/64' }].map(
        (headers) => keyOf(partition, { ...headers, c: '1' }),
      )
      expect(new Set(keys).size).toBe(4)
    }
  })

  test('the key of all clients together is a readable text', () => {
    const all: PartitionPart = { kind: 'global' }
    expect(keyOf([all])).toBe('global')
    expect(keyOf([all], { a: '1' }, { address: '203.0.113.7', prefix: '203.0.113.7' }, 'b')).toBe('global')
  })

  test.each([
    ['Bearer tok', 'Bearer tok'],
    ['Basic dTpw', 'Basic dTpw'],
    ['Digest username="a", nonce="b"', 'Digest username="a", nonce="b"'],
    ['k-1', 'Bearer k-1'],
    ['DPoP x', 'Bearer x'],
    ['Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln', 'Bearer eyJhbGciOiJIUzI1NiJ9.e30'],
  ])('by credentials in their usual spelling %j is the hash of %j', (value, counted) => {
    const hash = createHash('sha256').update(`${counted.length}:${counted}`).digest('base64url')
    expect(keyOf([header('authorization')], { authorization: value })).toBe(`h:${hash.slice(0, 22)}`)
  })
})
