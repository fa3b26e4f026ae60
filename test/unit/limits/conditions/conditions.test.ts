import { describe, expect, test } from 'vitest'
import { limits } from '../../../../proxy/config/rules/limits.ts'
import { headersOf } from '../../../../proxy/http/message/headers.ts'
import { doAtOnce } from '../../../../shared/steps.ts'
import { compileConditions } from '../../../../proxy/limits/conditions/conditions.ts'
import type { ReadClaims } from '../../../../proxy/limits/keys/tokens/token-reader.ts'
import { claimDetails } from '../../../../proxy/limits/keys/tokens/claim-details.ts'
import type { Rule } from '../../../../proxy/policy.ts'
import { noAddressLists } from '../../../../proxy/request/addresses/lists/address-lists.ts'
import { readTarget } from '../../../../proxy/request/target/target.ts'
import { asRead } from '../../../support/http/as-read.ts'

const NOW_S = 1_800_000_000

type Asked = {
  /** Name and value of each header line. */
  readonly lines?: readonly (readonly [string, string])[]
  readonly path?: string
  readonly host?: string
  readonly address?: string
  readonly claims?: ReadClaims
}

function ruleWith(fields: object): Rule {
  const [rule] = limits.parse([{ name: 'r', match: 'GET /', requests: 1, window: '1m', ...fields }])
  if (!rule) throw new Error('no rule')
  return rule
}

function applies(fields: object, asked: Asked): boolean {
  const { lines = [], path = '/', host = 'a.example', address = '192.0.2.1', claims } = asked
  const rule = ruleWith(fields)
  const conditions = doAtOnce(
    compileConditions([rule], { files: noAddressLists, wallNow: () => NOW_S * 1000 }),
  )
  const target = readTarget('GET', path)
  if (typeof target === 'string') throw new Error(target)
  const rawHeaders = asRead(lines.flat())
  const headers = headersOf(rawHeaders)
  const source = { client: { address, prefix: address }, host, target, claims, headers, rawHeaders }
  const applying = conditions?.applying([rule.policy], source) ?? [rule.policy]
  expect(conditions?.unmet(rule.policy, source) === undefined).toBe(applying.length === 1)
  return applying.length === 1
}

/** Whether a rule applies with a condition in `when`, and whether it applies with the same condition in `unless`. */
function both(condition: object, asked: Asked): string {
  const said = [applies({ when: condition }, asked), applies({ unless: condition }, asked)]
  return said.map((each) => (each ? 'applies' : 'does not')).join(', ')
}

/** YES: the condition holds for every backend; NO: for no backend. MAYBE: for some backends, so the rule applies either way. */
const YES = 'applies, does not'
const NO = 'does not, applies'
const MAYBE = 'applies, applies'

const token = (payload: object): Exclude<ReadClaims, string> => [
  Object.assign(new Map<string, string>(), { details: claimDetails({ ...payload }, ['plan', 'roles']) }),
]
const bearer = [['Authorization', 'Bearer eyJh.eyJz.c2ln']] as const

describe('a condition on a parameter beside a charset in which Django decodes the query', () => {
  test.each([
    ['text/plain; charset=utf-7', '/?plan=pro', MAYBE],
    ['text/plain; CHARSET="cp037"', '/?x=1', MAYBE],
    ["text/plain; charset*=utf-8''utf-7", '/?plan=pro', MAYBE],
    ['text/plain; charset=utf-7', '/', NO],
    ['text/plain; charset=utf-8', '/?plan=pro', NO],
    ['text/plain; charset=windows-1251', '/?plan=pro', NO],
    ['text/plain; charset=windows-1251', '/?plan=pr%ee', MAYBE],
  ])('%s %s', (type, path, expected) => {
    expect(both({ query: { plan: 'free' } }, { path, lines: [['Content-Type', type]] })).toBe(expected)
  })
})

describe('a condition on a header', () => {
  const key = (value: string) => ({ lines: [['X-Key', value]] }) as const
  test.each<[condition: unknown, asked: Asked, expected: string]>([
    ['absent', {}, YES],
    ['absent', key('a'), NO],
    // Some backends check whether the header exists, others whether it has a value.
    ['absent', key(''), MAYBE],
    ['absent', key('""'), MAYBE],
    ['absent', key(' , '), MAYBE],
    ['absent', key('\xe3\x80\x80'), MAYBE],
    ['present', {}, NO],
    ['present', key('a'), YES],
    ['present', key(''), MAYBE],
    ['a', key('a'), YES],
    ['a', key('b'), NO],
    ['a', {}, NO],
    ['a', key('A'), MAYBE],
    ['a', key('"a"'), MAYBE],
    ['a', key('a\xe3\x80\x80'), MAYBE],
    ['a', key('\xc2\xa0a'), MAYBE],
    ['a b', key('a\xe2\x80\x83b'), MAYBE],
    ['a', key('a;q=1'), MAYBE],
    ['a', key('b, a'), MAYBE],
    ['a', key('a, b'), MAYBE],
    ['a', key('ab'), NO],
    ['7', key('07'), MAYBE],
    [7, key('7'), YES],
    [true, key('true'), YES],
    ['a', { lines: [...key('a').lines, ...key('b').lines] }, MAYBE],
    ['a', { lines: [...key('a').lines, ...key('a').lines] }, MAYBE],
    ['a, b', { lines: [...key('a').lines, ...key('b').lines] }, MAYBE],
    [['a', 'b'], key('b'), YES],
    [['a', 'b'], key('c'), NO],
    [['absent', 'b'], {}, YES],
    [['absent', 'b'], key('c'), NO],
    [{ prefix: 'ent_' }, key('ent_1'), YES],
    [{ prefix: 'ent_' }, key('ENT_1'), MAYBE],
    [{ prefix: 'ent_' }, key('\xe3\x80\x80ent_1'), MAYBE],
    [{ prefix: 'ent_' }, key('free_1, ent_1'), MAYBE],
    [{ prefix: 'ent_' }, key('ent_1, free_1'), MAYBE],
    [{ prefix: 'ent_' }, key('rent_1'), NO],
    // Some backends split values at a semicolon; for others it begins a parameter.
    [{ prefix: 'ent_' }, key('ent_1; free_1'), MAYBE],
    [{ prefix: 'ent_' }, key('ent_1; ent_2'), YES],
    [{ prefix: 'ent_' }, key('ent_1; level = 2;'), YES],
    [{ prefix: 'ent_' }, key('ent_1;free'), MAYBE],
    [{ prefix: 'ent_' }, key(`ent_1${';ent_1'.repeat(64)}`), MAYBE],
    [{ prefix: 'ent_1; l' }, key('ent_1; level=2'), YES],
    [{ prefix: 'ent_1; l' }, key('ent_1; x'), NO],
    [{ contains: 'bot' }, key('robot; cat'), MAYBE],
    [{ contains: 'bot' }, key('robot; cat=1'), YES],
    [{ contains: 'bot' }, key('a robot'), YES],
    [{ contains: 'bot' }, key('a ROBOT'), MAYBE],
    [{ contains: 'bot' }, key('bo, t'), NO],
    [{ is: 'absent' }, key('absent'), YES],
    [{ is: 'absent' }, {}, NO],
    ['é', key('Ã©'), YES],
    ['é', key('e'), NO],
  ])('%# %j: %j %s', (condition, asked, expected) => {
    expect(both({ header: { 'x-key': condition } }, asked)).toBe(expected)
  })

  test.each<[condition: unknown, value: string, expected: string]>([
    [{ prefix: 'Bearer ' }, 'Bearer abc', YES],
    [{ prefix: 'Bearer ' }, 'bearer \t abc', MAYBE],
    [{ prefix: 'Bearer ' }, 'Basic dTpw', NO],
    ['Bearer abc', 'BEARER  abc', MAYBE],
    ['Bearer abc', 'Bearer abd', NO],
    ['absent', ' \xa0 ', MAYBE],
  ])('Authorization as %j: %j %s', (condition, value, expected) => {
    expect(both({ header: { authorization: condition } }, { lines: [['Authorization', value]] })).toBe(
      expected,
    )
  })

  test.each<[value: string, expected: string]>([
    ['application/json', YES],
    ['application/json; charset=utf-8', MAYBE],
    // For PHP the type ends at the space.
    ['application/json x', MAYBE],
    ['text/plain; application/json x', MAYBE],
    ['application/json-x y', NO],
  ])('Content-Type as application/json: %j %s', (value, expected) => {
    expect(
      both({ header: { 'content-type': 'application/json' } }, { lines: [['Content-Type', value]] }),
    ).toBe(expected)
  })

  test('a header of 16 KiB in many pieces may have any value, and begins as it begins', () => {
    const asked: Asked = { lines: [['X-Key', 'b,'.repeat(8000)]] }
    expect(both({ header: { 'x-key': 'a' } }, asked)).toBe(MAYBE)
    expect(both({ header: { 'x-key': { prefix: 'a' } } }, asked)).toBe(NO)
    expect(both({ header: { 'x-key': { prefix: 'b' } } }, asked)).toBe(MAYBE)
  })
})

describe('a condition on User-Agent', () => {
  const agent = 'Mozilla/5.0 (X11; Linux) AppleWebKit/537 (KHTML, like Gecko) GoogleBot'
  test.each<[condition: unknown, value: string | undefined, expected: string]>([
    [{ contains: 'googlebot' }, agent, YES],
    [{ prefix: 'mozilla/' }, agent, YES],
    [{ contains: 'curl' }, agent, NO],
    ['absent', undefined, YES],
    ['absent', '', MAYBE],
    ['absent', agent, NO],
  ])('%j: %j %s', (condition, value, expected) => {
    const asked: Asked = value === undefined ? {} : { lines: [['User-Agent', value]] }
    expect(both({ userAgent: condition }, asked)).toBe(expected)
  })
})

describe('a condition on a cookie', () => {
  test.each<[condition: unknown, cookies: string | undefined, expected: string]>([
    ['absent', undefined, YES],
    ['absent', 'theme=dark', YES],
    ['absent', 'sid=1', NO],
    ['absent', 'a=1; sid=1; b=2', NO],
    ['absent', 'sid=', MAYBE],
    ['absent', 'sid=; sid=1', MAYBE],
    // Another spelling, which only some backends accept as the name.
    ['absent', 'SID=1', MAYBE],
    ['absent', '%73id=1', MAYBE],
    ['absent', 'sid[]=1', MAYBE],
    // A quote that hides the cookie from some backends, and a cookie that makes some give up.
    ['absent', 'a="; sid=1; "', MAYBE],
    ['absent', 'a b; sid=1', MAYBE],
    ['absent', 'sid', MAYBE],
    ['present', 'sid=1', YES],
    ['present', 'theme=sid', NO],
    ['present', 'sidx=1', NO],
    ['present', 'x=sid=1', NO],
    ['present', 'x]sid=1', MAYBE],
    ['free', 'plan=free; sid=free', YES],
    ['free', 'sid=free; sid=pro', MAYBE],
    ['free', 'sid=pro', NO],
    ['free', 'sid=%66ree', MAYBE],
    ['free', 'sid="free"', MAYBE],
    // Blank once it is decoded and trimmed, or after an escape that some backends reject.
    ['absent', 'sid=%20', MAYBE],
    ['absent', 'sid=+', MAYBE],
    ['absent', 'sid=1%', MAYBE],
    ['absent', 'sid=1; b=%ff', MAYBE],
    ['absent', 'sid=%c3%a9', NO],
    // Beside a malformed escape the cookie may be absent, but has no other value.
    ['absent', 'sid=pro; b=1%', MAYBE],
    ['free', 'sid=pro; b=1%', NO],
    ['free', 'b=50%; sid=pro', NO],
    ['free', 'sid=pro; b=%u0107', NO],
    ['free', 'sid="pro"; b=50%', NO],
    ['free', 'sid=free; b=50%', MAYBE],
    ['free', 'sid=pro%; b=1', MAYBE],
    ['free', 'b%=1; sid=pro', MAYBE],
    ['free', 'sid="pro; b=%"', MAYBE],
    ['free', 'sid="pro\\"; b=%"', MAYBE],
    ['free', 'sid=FREE', MAYBE],
    // A NUL in another value does not change this one.
    ['free', 'sid=pro; b=%00', NO],
    ['free', 'b=x%2500; sid=pro', NO],
    ['pro', 'sid=pro; b=%00', MAYBE],
    ['free', 'sid=free%00x', MAYBE],
    ['free', 'sid=pro%00', MAYBE],
    ['free', 'b%00=1; sid=pro', MAYBE],
    ['free', 'sid="pro; b=%00"', MAYBE],
    // Express reads these cookies as JSON.
    ['free', 'sid=j: "fr\\u0065e"', MAYBE],
    ['7', 'sid=j:7', MAYBE],
    [{ prefix: 'fr' }, 'sid=j%3A%22free%22', MAYBE],
    [{ prefix: 'a-' }, 'sid=a-1', YES],
    [{ prefix: '00' }, 'sid=007', YES],
    [{ prefix: '7.0' }, 'sid=7.0; sid=1', MAYBE],
    [{ prefix: '00' }, 'sid=%3007', MAYBE],
    [{ contains: 'b' }, 'sid=abc', YES],
    [{ contains: 'b' }, 'sid=aBc', MAYBE],
    [{ contains: 'b' }, 'sid=ac', NO],
  ])('%j: %j %s', (condition, cookies, expected) => {
    const asked: Asked = cookies === undefined ? {} : { lines: [['Cookie', cookies]] }
    expect(both({ cookie: { sid: condition } }, asked)).toBe(expected)
  })
})

describe('a condition on a query parameter', () => {
  test.each<[condition: unknown, path: string, expected: string]>([
    ['absent', '/', YES],
    ['absent', '/?b=1', YES],
    ['absent', '/?a=1', NO],
    ['absent', '/?a', MAYBE],
    ['absent', '/?a=', MAYBE],
    ['absent', '/?A=1', MAYBE],
    ['absent', '/?%61=1', MAYBE],
    ['absent', '/?a[]=1', MAYBE],
    ['absent', '/?b=1;a=1', MAYBE],
    ['absent', '/x%3fa=1', MAYBE],
    ['absent', `/?${'b&'.repeat(1000)}a=1`, MAYBE],
    ['1', '/?a=1', YES],
    ['1', '/?a=1&a=2', MAYBE],
    ['1', '/?a=%31', MAYBE],
    // ASP.NET and Grails read the member of a model, Spring a default value.
    ['1', '/?a=1&m.a=0', MAYBE],
    ['1', '/?m.a=0&a=1', MAYBE],
    ['1', '/?a=1&m[a]=0', MAYBE],
    ['1', '/?a=1&m%2EA=0', MAYBE],
    ['1', '/?a=1&!a=0', MAYBE],
    ['absent', '/?m.a=1', MAYBE],
    ['absent', '/?m%5Ba%5D=1', MAYBE],
    ['absent', '/?!a=1', MAYBE],
    ['absent', '/?m.b=1&x=m.a', YES],
    ['1', '/?a=1&b.c=0&x=m.a', YES],
    // Malformed escapes: Go drops the parameter, Rack drops all parameters.
    ['absent', '/?a=1%', MAYBE],
    ['absent', '/?a=1%zz', MAYBE],
    ['absent', '/?a=1&b=%', MAYBE],
    ['absent', '/?a=1%ff', MAYBE],
    ['1', '/?a=2&b=%', NO],
    ['1', '/?b=50%&a=2', NO],
    ['1', '/?50%&a=2', NO],
    ['1', '/?a=1&b=%', MAYBE],
    ['1', '/?a=2%&b=1', MAYBE],
    ['1', '/?a=2;b=%', MAYBE],
    ['1', '/?b%=1&a=2', MAYBE],
    ['absent', '/?a=caf%C3%A9', NO],
    // Blank values: Laravel trims them to null.
    ['absent', '/?a=%20', MAYBE],
    ['absent', '/?a=+', MAYBE],
    ['absent', '/?a=%09%2520', MAYBE],
    ['absent', '/?a=%EF%BB%BF', MAYBE],
    ['absent', '/?a=,', MAYBE],
    ['absent', '/?a=%00x', MAYBE],
    ['1', '/?a=2&b=%00', NO],
    ['1', '/?a=2%00&b=1', MAYBE],
    ['1', '/?a=2;%00&b=1', MAYBE],
    ['absent', '/?a=%20x', NO],
    // An escape does not match the literal text that it begins with.
    [{ contains: 'b' }, '/?a=%6b', MAYBE],
    [{ contains: 'b' }, '/?a=%256b', MAYBE],
    [{ contains: 'b' }, '/?a=x%6b%2562', MAYBE],
    [{ contains: 'b' }, '/?a=%6b%', MAYBE],
    [{ contains: 'b' }, '/?a=x%20b', YES],
    [{ contains: '+' }, '/?a=x+y', MAYBE],
    ['1', '/?a=2', NO],
    [{ prefix: 'x' }, '/?a=xy', YES],
    [{ prefix: 'x' }, '/?a=%78y', MAYBE],
    [{ prefix: 'x' }, '/?a=yx', NO],
  ])('%j: %j %s', (condition, path, expected) => {
    expect(both({ query: { a: condition } }, { path })).toBe(expected)
  })
})

describe('a condition on a claim', () => {
  const active = { exp: NOW_S + 60, nbf: NOW_S - 60 }
  test.each<[condition: unknown, asked: Asked, expected: string]>([
    ['absent', {}, YES],
    ['absent', { lines: bearer }, YES],
    ['absent', { lines: bearer, claims: token({ ...active, plan: 'pro' }) }, NO],
    ['absent', { lines: bearer, claims: token(active) }, YES],
    ['pro', { lines: bearer, claims: token({ ...active, plan: 'pro' }) }, YES],
    ['pro', { lines: bearer, claims: token({ plan: 'pro' }) }, YES],
    ['pro', { lines: bearer, claims: token({ ...active, plan: 'free' }) }, NO],
    // A backend may accept a token that has expired or is not yet valid, or another token beside it.
    ['pro', { lines: bearer, claims: token({ exp: NOW_S - 1, plan: 'pro' }) }, MAYBE],
    ['pro', { lines: bearer, claims: token({ nbf: NOW_S + 1, plan: 'pro' }) }, MAYBE],
    ['pro', { lines: bearer, claims: token({ exp: 'soon', plan: 'pro' }) }, MAYBE],
    ['absent', { lines: bearer, claims: token({ exp: NOW_S - 1, plan: 'pro' }) }, MAYBE],
    ['pro', { lines: [...bearer, ...bearer], claims: token({ plan: 'pro' }) }, MAYBE],
    ['pro', { lines: bearer, claims: [...token({ plan: 'pro' }), ...token({ plan: 'free' })] }, MAYBE],
    ['pro', { lines: bearer, claims: 'too-many' }, MAYBE],
    ['7', { lines: bearer, claims: token({ plan: 7 }) }, YES],
    [true, { lines: bearer, claims: token({ plan: true }) }, YES],
    ['absent', { lines: bearer, claims: token({ plan: { a: 1 } }) }, YES],
    ['absent', { lines: bearer, claims: token({ plan: '' }) }, YES],
    ['é', { lines: bearer, claims: token({ plan: 'é' }) }, YES],
    ['pro', { lines: bearer, claims: token({ plan: Array.from({ length: 65 }, (_, i) => `p${i}`) }) }, MAYBE],
  ])('%# %j: %j %s', (condition, asked, expected) => {
    expect(both({ jwt: { plan: condition } }, asked)).toBe(expected)
  })

  test('any value of a list counts', () => {
    const claims = token({ roles: ['reader', 'admin'] })
    expect(both({ jwt: { roles: 'admin' } }, { lines: bearer, claims })).toBe(YES)
    expect(both({ jwt: { roles: 'owner' } }, { lines: bearer, claims })).toBe(NO)
  })
})

test.each<[condition: object, asked: Asked, expected: string]>([
  [{ ip: '10.0.0.0/8' }, { address: '10.1.2.3' }, YES],
  [{ ip: ['192.0.2.1', '2001:db8::/32'] }, { address: '2001:db8::5' }, YES],
  [{ ip: ['192.0.2.1', '2001:db8::/32'] }, { address: '192.0.2.2' }, NO],
  [{ host: 'app.example' }, { host: 'app.example:8080' }, YES],
  [{ host: '::1' }, { host: '[::1]:8080' }, YES],
  // Go serves another site for these hosts.
  [{ host: 'app.example' }, { host: 'APP.example:8080' }, MAYBE],
  [{ host: 'app.example' }, { host: 'app.example.' }, MAYBE],
  [{ host: 'app.example' }, { host: 'app.example..:80' }, MAYBE],
  [{ host: ['*.app.example'] }, { host: 'X.app.example' }, MAYBE],
  [{ host: ['*.app.example'] }, { host: 'x.app.example' }, YES],
  [{ host: ['*.app.example'] }, { host: 'app.example' }, NO],
])('%j: %j %s', (condition, asked, expected) => {
  expect(both(condition, asked)).toBe(expected)
})

test('all conditions of when must hold, and one of unless is enough to skip the rule', () => {
  const when = [{ ip: '10.0.0.0/8' }, { host: 'a.example' }]
  expect(applies({ when }, { address: '10.0.0.1' })).toBe(true)
  expect(applies({ when }, { address: '10.0.0.1', host: 'b.example' })).toBe(false)
  expect(applies({ when }, {})).toBe(false)
  expect(applies({ unless: when }, {})).toBe(false)
  expect(applies({ unless: when }, { host: 'b.example' })).toBe(true)
  expect(applies({ when: when[0], unless: when[1] }, { address: '10.0.0.1', host: 'b.example' })).toBe(true)
})

test('overrides have the conditions of their rule', () => {
  const rule = ruleWith({
    when: { host: 'a.example' },
    overrides: [{ clients: { ip: '192.0.2.1' }, requests: 2 }],
  })
  const conditions = doAtOnce(compileConditions([rule], { files: noAddressLists, wallNow: () => 0 }))
  const [override] = rule.overrides ?? []
  const target = readTarget('GET', '/')
  if (typeof target === 'string' || !override) throw new Error('no target')
  const source = {
    client: { address: '192.0.2.1', prefix: '192.0.2.1' },
    host: 'b.example',
    target,
    claims: undefined,
    headers: {},
    rawHeaders: [],
  }
  expect(conditions?.applying([override.policy], source)).toEqual([])
  expect(conditions?.applying([override.policy], { ...source, host: 'a.example' })).toEqual([override.policy])
})

test('a condition that several rules have is read once for a request', () => {
  let reads = 0
  const rules = Array.from({ length: 3 }, (_, i) =>
    ruleWith({ name: `r${i}`, when: { jwt: { plan: 'pro' } } }),
  )
  const conditions = doAtOnce(
    compileConditions(rules, {
      files: noAddressLists,
      wallNow: () => {
        reads += 1
        return 0
      },
    }),
  )
  const target = readTarget('GET', '/')
  if (typeof target === 'string') throw new Error(target)
  const source = {
    client: { address: '192.0.2.1', prefix: '192.0.2.1' },
    host: 'a',
    target,
    claims: token({ plan: 'pro' }),
    headers: {},
    rawHeaders: [],
  }
  const policies = rules.map(({ policy }) => policy)
  for (const count of [1, 2]) {
    expect(conditions?.applying(policies, source)).toEqual(policies)
    expect(reads).toBe(count)
  }
})

test('the cheap conditions are read first, and the first of the table that is not met is named', () => {
  let tokenReads = 0
  const when = [{ jwt: { plan: 'pro' } }, { host: 'b.example' }]
  const rule = ruleWith({ when })
  const conditions = doAtOnce(
    compileConditions([rule], {
      files: noAddressLists,
      wallNow: () => {
        tokenReads += 1
        return 0
      },
    }),
  )
  const target = readTarget('GET', '/')
  if (typeof target === 'string') throw new Error(target)
  const client = { address: '192.0.2.1', prefix: '192.0.2.1' }
  const claims = token({ plan: 'free' })
  const source = { client, host: 'a.example', target, claims, headers: {}, rawHeaders: [] }
  expect(conditions?.applying([rule.policy], source)).toEqual([])
  expect(tokenReads).toBe(0)
  expect(conditions?.unmet(rule.policy, source)).toMatchObject({ field: 'when', condition: rule.when?.[0] })
})

test('a table without conditions has none to read', () => {
  expect(
    doAtOnce(compileConditions([ruleWith({})], { files: noAddressLists, wallNow: () => 0 })),
  ).toBeUndefined()
})
