import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { compileClientLists, listedHeaders } from '../../../proxy/limits/clients/lists/client-lists.ts'
import type { ListEntry, Rule } from '../../../proxy/policy.ts'
import { makePolicy } from '../../support/limiter/charges.ts'
import { asRead } from '../../support/http/as-read.ts'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const ip = (...ranges: string[]): ListEntry => ({ kind: 'ip', ranges })
const secret = (name: string, value: string): ListEntry => ({ kind: 'header', name, sha256: sha256(value) })

const client = (address: string) => ({ address, prefix: address })
const requestWith = (...fields: string[]) => ({ rawHeaders: asRead(fields) })
const plain = requestWith('Host', 'a')

const [login, search] = [makePolicy('login', 1, 1000), makePolicy('search', 1, 1000)]
const both = [login, search]
const ruleOf = (policy: Rule['policy'], allowList?: readonly ListEntry[]): Rule => {
  return { policy, match: [], except: [], ...(allowList && { allowList }) }
}

function compile(lists: Partial<Parameters<typeof compileClientLists>[0]>) {
  const compiled = compileClientLists({ allowList: [], denyList: [], rules: [], ...lists })
  const denies = (...asked: Parameters<typeof compiled.findDenial>): boolean =>
    compiled.findDenial(...asked) !== undefined
  return { ...compiled, denies }
}

test('without lists no client is listed, and the policies stay unchanged', () => {
  const lists = compile({ rules: [ruleOf(login)] })
  expect(lists.denies(client('203.0.113.7'), plain)).toBe(false)
  expect(lists.applying(both, client('203.0.113.7'), plain)).toBe(both)
})

describe('client lists with addresses', () => {
  const lists = compile({ allowList: [ip('10.0.0.0/8', '2001:db8::7')], denyList: [ip('203.0.113.0/24')] })

  test.each(['10.1.2.3', '2001:db8::7'])('%s passes all rules', (address) => {
    expect(lists.applying(both, client(address), plain)).toEqual([])
    expect(lists.denies(client(address), plain)).toBe(false)
  })

  // A client is a /64, but the list contains a single address.
  test.each(['11.0.0.1', '2001:db8::8', '192.0.2.1'])('%s does not pass all rules', (address) => {
    expect(lists.applying(both, client(address), plain)).toBe(both)
  })

  test('203.0.113.9 is refused', () => {
    expect(lists.denies(client('203.0.113.9'), plain)).toBe(true)
    expect(lists.denies(client('203.0.114.9'), plain)).toBe(false)
  })

  test('the allowList of a rule exempts from that rule only', () => {
    const own = compile({ rules: [ruleOf(login, [ip('192.0.2.1')]), ruleOf(search)] })
    expect(own.applying(both, client('192.0.2.1'), plain)).toEqual([search])
    expect(own.applying(both, client('192.0.2.2'), plain)).toEqual(both)
  })
})

describe('denied credentials in Authorization', () => {
  const token = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.NHVaYe26MbtOYhSKkoKYdFVomg4i8ZJd8_-RU8VNbfc'
  const encrypted =
    'eyJhbGciOiJkaXIiLCJlbmMiOiJBMTI4R0NNIn0..MS3_gDEt_4AxLf-A.Mi3_gDIt_4AyLf-AMg.My3_gDMt_4AzLf-AMy3_gQ'
  const lists = compile({
    denyList: [
      secret('authorization', `Bearer ${token}`),
      secret('authorization', 'Token 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b'),
      secret('authorization', 'Bearer 1|aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6kL9n'),
      secret('authorization', `Bearer ${encrypted}`),
      secret('authorization', 'Bearer 550e8400-e29b-41d4-a716-446655440000'),
      secret('authorization', `Basic ${btoa('Alice:secret')}`),
    ],
  })

  test.each([
    `Bearer ${token}`,
    `JWT ${token}`,
    `Bearer ${token}AAAA`,
    `Bearer ${token.slice(0, -5)}!~${token.slice(-5)}`,
    `Bearer other ${token}`,
    `Bearer ${token.slice(0, 9)}Bearer ${token.slice(9)}`,
    `Bearer ${token.slice(0, -9)} Bearer ${token.slice(-9)}`,
    'Bearer 9f86d081884c7dBearer 659a2feaa0c55ad015a3bf4f1b',
    `Basic ${btoa('Alice:secret').slice(0, 5)}Basic ${btoa('Alice:secret').slice(5)}`,
    `Bearer ${token.replaceAll('-', '+').replaceAll('_', '/')}==`,
    'Bearer 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b',
    'Bearer 1|aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6kL9n',
    'Bearer 1|aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6kL9n,1',
    'Bearer 1|aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6kL9n, x',
    'x Bearer 1|aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6kL9n',
    '1234567 1|aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6kL9n',
    '12345671|aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6kL9n',
    `Bearer ${encrypted}`,
    `Bearer ${encrypted.slice(0, -1)}R==`,
    'Bearer 550E8400-E29B-41D4-A716-446655440000',
    'Bearer urn:uuid:550e8400e29b41d4a716446655440000',
    'token 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b==!',
    `Bearer${'\xe3\x80\x80'.repeat(20)}${token}\xc2\xa0`,
    'Bearer \xe2\x80\x839f86d081884c7d659a2feaa0c55ad015a3bf4f1b\xc2\x85',
    `Basic\xe1\x9a\x80${btoa('Alice:secret')}\xe3\x80\x80`,
    `Basic ${btoa('Alice:secret\0anything')}`,
    `basic ${btoa('Alice:secret').slice(0, 5)} *${btoa('Alice:secret').slice(5)}`,
  ])('%s is refused', (value) => {
    expect(lists.denies(client('192.0.2.1'), requestWith('authorization', value))).toBe(true)
  })

  // A backend gets the lines as one, joined by a comma, and a lenient backend reads the second word of it.
  const split = (text: string): string => `${text.slice(0, 5)}*${text.slice(5)}`
  test.each([
    ['junk in it', ['x', split(btoa('Alice:secret'))]],
    ['a NUL after it', ['Basic', btoa('Alice:secret\0anything')]],
    ['another line between', ['x', 'y', split(btoa('Alice:secret'))]],
    ['the other line twice', ['x', 'x', `Bearer ${token}`]],
    ['its usual spelling', ['Bearer other', `Bearer ${token}`]],
  ])('denied credentials are refused in a line of their own, with %s', (_, values) => {
    const request = requestWith(...values.flatMap((value) => ['authorization', value]))
    expect(lists.denies(client('192.0.2.1'), request)).toBe(true)
  })

  const header = btoa('{"alg":"HS256"}')
  test.each<[string, number, (i: number) => string]>([
    ['lines', 8, (i) => ','.repeat(i + 1)],
    ['tokens in several lines', 4, (i) => `${header}.${btoa(`{"sub":${i}}`)}.a`],
  ])('a request with more %s than can be told apart is refused', (_, most, value) => {
    const isDenied = (count: number): boolean => {
      const lines = Array.from({ length: count }, (_, i) => ['authorization', value(i)])
      return lists.denies(client('192.0.2.1'), requestWith(...lines.flat()))
    }
    expect(isDenied(most)).toBe(false)
    expect(isDenied(most + 1)).toBe(true)
  })

  test.each([
    'Bearer other',
    `Bearer ${token.slice(0, -9)}AAAAAAAAA`,
    `Basic ${btoa('Alice:secret2')}`,
    `Basic ${btoa('Alice2:secret')}`,
    '',
  ])('%s is not refused', (value) => {
    expect(lists.denies(client('192.0.2.1'), requestWith('authorization', value))).toBe(false)
  })
})

test.each(['\xa0', '\x85 ', '\xc2\xa0', '\xe3\x80\x80\t', '\xe2\x80\x85\xc2\x85'])(
  'a denied key is refused with blanks around it that some backend trims: %j',
  (blanks) => {
    const lists = compile({ denyList: [secret('x-api-key', 'key-7')] })
    for (const value of [`key-7${blanks}`, `${blanks}key-7`, `${blanks}key-7${blanks}`])
      expect(lists.denies(client('192.0.2.1'), requestWith('X-Api-Key', value))).toBe(true)
    expect(lists.denies(client('192.0.2.1'), requestWith('X-Api-Key', `key-7${blanks}x`))).toBe(false)
  },
)

describe('an override of a token in Authorization', () => {
  const usual = makePolicy('api', 100, 1000)
  const [fewer, more] = [makePolicy('api', 1, 1000), makePolicy('api', 1000, 1000)]
  const compileOverride = (policy: typeof fewer, token: string) =>
    compile({
      rules: [
        { ...ruleOf(usual), overrides: [{ clients: [secret('authorization', `Bearer ${token}`)], policy }] },
      ],
    })
  const quotaOf = (lists: ReturnType<typeof compile>, value: string): number | undefined =>
    lists.applying([usual], client('192.0.2.1'), requestWith('authorization', value))[0]?.quota

  test('an override of a token in Authorization holds for its usual spelling', () => {
    expect(quotaOf(compileOverride(fewer, 'abcdef'), 'bearer abcdef')).toBe(1)
    expect(quotaOf(compileOverride(more, 'abcdef'), 'bearer abcdef')).toBe(1000)
    expect(quotaOf(compileOverride(fewer, 'abcdef'), 'Bearer abcdeg')).toBe(100)
  })

  test('an override of a token in Authorization holds for what a lenient backend may take for it, if that is fewer requests', () => {
    expect(quotaOf(compileOverride(fewer, 'abcdef'), 'Token other, Bearer abcdef')).toBe(1)
    expect(quotaOf(compileOverride(more, 'abcdef'), 'Token other, Bearer abcdef')).toBe(100)
  })
})

test('more lines of Authorization than are compared deny nobody if denyList names no credentials', () => {
  const lists = compile({
    allowList: [secret('authorization', 'Bearer monitor')],
    denyList: [secret('x-api-key', 'stolen')],
  })
  const lines = Array.from({ length: 9 }, (_, i) => ['authorization', `Bearer ${i}`]).flat()
  expect(lists.denies(client('192.0.2.1'), requestWith(...lines, 'x-api-key', 'good'))).toBe(false)
  expect(lists.denies(client('192.0.2.1'), requestWith(...lines, 'x-api-key', 'stolen'))).toBe(true)
})

describe('overrides of several tokens in Authorization', () => {
  const usual = makePolicy('api', 100, 1000)
  const quotas = { more: 1000, fewer: 50, fewest: 5 }
  const overrides = Object.entries(quotas).map(([token, quota]) => ({
    clients: [secret('authorization', `Bearer ${token}`)],
    policy: makePolicy('api', quota, 1000),
  }))
  const byAddress = { clients: [ip('192.0.2.9')], policy: makePolicy('api', 70, 1000) }
  const lists = compile({ rules: [{ ...ruleOf(usual), overrides: [byAddress, ...overrides] }] })
  const quotaOf = (address: string, ...values: string[]): number | undefined =>
    lists.applying(
      [usual],
      client(address),
      requestWith(...values.flatMap((value) => ['authorization', value])),
    )[0]?.quota

  test('a client of several gets the first', () => {
    expect(quotaOf('192.0.2.9', 'Bearer fewest')).toBe(70)
    expect(quotaOf('192.0.2.9', 'Bearer more')).toBe(70)
    expect(quotaOf('192.0.2.1', 'Bearer more')).toBe(1000)
  })

  test.each([
    ['two in a line', ['Bearer fewer, Bearer fewest']],
    ['a second word', ['Bearer more fewest']],
    ['two lines', ['Bearer fewer', 'Bearer fewest']],
    ['too many to tell', Array.from({ length: 9 }, (_, i) => `Bearer ${i}`)],
  ])('a client that may be one of several gets the fewest requests: %s', (_, values) => {
    expect(quotaOf('192.0.2.1', ...values)).toBe(5)
  })
})

describe('client lists with the value of a secret header', () => {
  const lists = compile({
    allowList: [secret('x-probe-token', 'let me in'), secret('authorization', 'Bearer monitor')],
    denyList: [secret('x-api-key', 'stolen'), secret('x-api-key', 'lost'), secret('x-name', 'Ä')],
  })
  const isAllowed = (...headers: string[]): boolean =>
    lists.applying(both, client('192.0.2.1'), requestWith(...headers)).length === 0
  const isDenied = (...headers: string[]): boolean =>
    lists.denies(client('192.0.2.1'), requestWith(...headers))

  test('a header exempts a client by its value, whatever the case of its name and with blanks around it', () => {
    expect(isAllowed('x-probe-token', 'let me in')).toBe(true)
    expect(isAllowed('Host', 'a', 'X-Probe-Token', ' let me in\t')).toBe(true)
    expect(isAllowed('Authorization', 'bearer  monitor')).toBe(true)
  })

  test.each([
    ['another value', ['x-probe-token', 'let me out']],
    ['nothing', ['x-probe-token', '']],
    ['the hash itself', ['x-probe-token', `sha256:${sha256('let me in')}`]],
    ['another header', ['x-probe', 'let me in']],
    ['the secret of another header', ['authorization', 'let me in']],
    ['the name as a value', ['x-other', 'x-probe-token', 'let me in', 'y']],
    ['two lines', ['x-probe-token', 'let me in', 'X-Probe-Token', 'let me in']],
    ['a list', ['x-probe-token', 'let me in, let me in']],
  ])('%s does not pass', (_case, headers) => expect(isAllowed(...headers)).toBe(false))

  test('the value is refused, also beside another line of the header', () => {
    expect(isDenied('X-API-Key', 'stolen')).toBe(true)
    expect(isDenied('x-api-key', 'lost')).toBe(true)
    expect(isDenied('x-api-key', 'good', 'x-api-key', 'stolen')).toBe(true)
    expect(isDenied('x-api-key', 'good')).toBe(false)
    expect(isDenied('x-other', 'stolen')).toBe(false)
  })

  test('bytes beyond ASCII are those that were sent', () => {
    expect(isDenied('x-name', Buffer.from('Ä').toString('latin1'))).toBe(true)
  })

  test('the headers are known, for the backend to get one value of each', () => {
    expect(
      listedHeaders({
        allowList: [secret('x-a', '1'), ip('10.0.0.1')],
        denyList: [secret('x-b', '2')],
        rules: [ruleOf(login, [secret('x-c', '3')])],
      }),
    ).toEqual(['x-a', 'x-b', 'x-c'])
  })
})
