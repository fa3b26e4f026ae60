import { Socket } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readsUnits, whyUnread, withRequestedUnits } from '../../../proxy/limits/costs/requested-charges.ts'
import { Http1Request } from '../../../proxy/http/http1/request.ts'
import type { RequestedUnits } from '../../../proxy/policy.ts'
import type { UnreadReserve } from '../../../proxy/telemetry/telemetry.ts'
import { chargeAll, makePolicy } from '../../support/limiter/charges.ts'
import { runs } from '../../support/random/runs.ts'
import { asRead } from '../../support/http/as-read.ts'

// A client with an unreadable body must not pay less than one that states its cost: any number that a backend could read and the gateway
// does not counts as the whole quota. Only a plainly absent number counts as `else`.

const settle = { kind: 'json', path: ['n'] } as const

function tokens(reserve: RequestedUnits, name = 'tokens') {
  return makePolicy(name, 1000, 60_000, { cost: { reserve, settle } })
}

const plain = tokens({ paths: [['max_tokens']], otherwise: 70 })
const nested = tokens({ paths: [['options', 'num_predict']], otherwise: 70 })
const several = tokens({ paths: [['max_tokens'], ['max_completion_tokens']], otherwise: 70 })
const withoutElse = tokens({ paths: [['max_tokens']] })
const planned = { ...withoutElse, plans: { quotas: { free: 50, pro: 10_000 } } }

function read(policy: ReturnType<typeof tokens>, body: string | Buffer): unknown[] {
  const noted: UnreadReserve[] = []
  const telemetry = { reserveUnread: (_: unknown, reason: UnreadReserve) => void noted.push(reason) }
  const [charge] = withRequestedUnits(chargeAll('ip:a', [policy]), Buffer.from(body), telemetry)
  return noted[0] === undefined ? [charge?.units] : [charge?.units, ...noted]
}

describe('a number at the top', () => {
  test.each<[string, number, UnreadReserve?]>([
    ['{"max_tokens":12}', 12],
    [' \r\n\t{ "a" : [ { "max_tokens" : 5 } ] , "max_tokens" : 12 } ', 12],
    ['{"messages":[{"content":"\\"max_tokens\\":1 } ] {"}],"max_tokens":12}', 12],
    ['{"max_tokens":1e2}', 100],
    ['{"max_tokens":11.2}', 12],
    ['{"max_tokens":1}', 1],
    ['{"max_tokens" : 12\n}', 12],
    ['{"max-tokens":12}', 12],
    ['{"max_tokens\\u0000":12}', 12],
    ['{"max_tokens ":12}', 12],
    ['{"max_tokens":1000}', 1000],
    ['{"max_tokens":1001}', 1000],
    ['{"max_tokens":1e400}', 1000],
    ['{"max_\\u0074okens":12}', 12],
    ['{"MAX_TOKENS":12}', 12],
    ['{"max_toKen\u017f":12}', 12],
    ['{"max_to\u212aens":12}', 12],
    ['{"maxTokens":12}', 12],
    ['{}', 70, 'missing'],
    ['null', 70, 'missing'],
    ['', 70, 'missing'],
    ['{"a":{"max_tokens":12}}', 70, 'missing'],
    ['{"a":["max_tokens",12,":"]}', 70, 'missing'],
    ['{"a":"max_tokens","b":12}', 70, 'missing'],
    ['{"max_tokens":null}', 70, 'missing'],
    ['{"max_token":12,"max_tokenss":12,"ax_tokens":12,"":12}', 70, 'missing'],
    ['{"max_tokens":0}', 1000, 'number'],
    ['{"max_tokens":-0}', 1000, 'number'],
    ['{"max_tokens":0.9}', 1000, 'number'],
    ['{"max_tokens":""}', 1000, 'number'],
    [`{${'"öße":1,'.repeat(64)}"max_tokens":12}`, 12],
    [`{${'"öße":1,'.repeat(65)}"max_tokens":12}`, 1000, 'number'],
    [`{"a":{${'"öße":1,'.repeat(900)}"b":1},"max_tokens":12}`, 12],
    ['{"max_tokens":{},"a":5}', 1000, 'number'],
    ['{"__proto__":{"max_tokens":1}}', 70, 'missing'],
    ['{"max_tokens":-1}', 1000, 'number'],
    ['{"max_tokens":-1e400}', 1000, 'number'],
    ['{"max_tokens":"100"}', 1000, 'number'],
    ['{"max_tokens":true}', 1000, 'number'],
    ['{"max_tokens":[1]}', 1000, 'number'],
    ['{"max_tokens":{"max_tokens":1}}', 1000, 'number'],
    ['[{"max_tokens":1}]', 1000, 'number'],
    ['"max_tokens"', 1000, 'number'],
    ['{"max_tokens":1,"max_tokens":1}', 1000, 'repeated'],
    ['{"max_tokens":1,"max_tokens":null}', 1000, 'repeated'],
    ['{"max_tokens":1,"a":{},"Max_Tokens":900}', 1000, 'repeated'],
    ['{"max_tokens":1,"maxTokens":900}', 1000, 'repeated'],
    ['{"max_tokens":1}{"max_tokens":900}', 1000, 'json'],
    ['{"max_tokens":1,}', 1000, 'json'],
    ['{"max_tokens":1 /* 900 */}', 1000, 'json'],
    ['{"max_tokens":NaN}', 1000, 'json'],
    ['{"max_tokens":0100}', 1000, 'json'],
    ["{'max_tokens':1}", 1000, 'json'],
    ['max_tokens=1', 1000, 'json'],
    ['\ufeff{"max_tokens":1}', 1000, 'json'],
    [' ', 1000, 'json'],
    ['[', 1000, 'json'],
    ['['.repeat(65_000), 1000, 'json'],
    ['['.repeat(32_000) + ']'.repeat(32_000), 1000, 'number'],
    ['{"max_tokens":'.repeat(4000), 1000, 'json'],
  ])('%.60s', (body, ...expected) => expect(read(plain, body)).toEqual(expected))

  test('a number in bytes that are not UTF-8 is not read', () => {
    expect(read(plain, Buffer.from('{"a":"\xff","max_tokens":1}', 'latin1'))).toEqual([1000, 'json'])
    expect(read(plain, Buffer.from('{"max_tokens":1}', 'utf16le'))).toEqual([1000, 'json'])
  })

  test('without `else`, requests that state no number reserve the whole quota', () =>
    expect(read(withoutElse, '{}')).toEqual([1000, 'missing']))

  test('before the plan of a client is known, the quota is that of the largest plan', () => {
    expect(read(planned, '{"max_tokens":5000}')).toEqual([5000])
    expect(read(planned, '{"max_tokens":1e400}')).toEqual([10_000])
    expect(read(planned, '{}')).toEqual([10_000, 'missing'])
    expect(read({ ...planned, plan: 'free', quota: 50 }, '{"max_tokens":5000}')).toEqual([50])
  })
})

describe('a number further down', () => {
  test.each<[string, number, UnreadReserve?]>([
    ['{"options":{"num_predict":12}}', 12],
    ['{"options":{"a":{"num_predict":9},"num_predict":12},"num_predict":7}', 12],
    ['{"options":{}}', 70, 'missing'],
    ['{"options":null}', 70, 'missing'],
    ['{"num_predict":12}', 70, 'missing'],
    ['{"a":{"options":{"num_predict":12}}}', 70, 'missing'],
    ['{"options":{"options":{"num_predict":12}}}', 70, 'missing'],
    ['{"options":{"num_predict":-1}}', 1000, 'number'],
    ['{"options":[{"num_predict":12}]}', 1000, 'number'],
    ['{"options":5}', 1000, 'number'],
    ['{"options":"num_predict"}', 1000, 'number'],
    ['{"options":{"num_predict":1},"options":{}}', 1000, 'repeated'],
    ['{"options":{"num_predict":1},"Options":{"num_predict":900}}', 1000, 'repeated'],
    ['{"options":null,"options":{"num_predict":1}}', 1000, 'repeated'],
  ])('%s', (body, ...expected) => expect(read(nested, body)).toEqual(expected))
})

describe('several numbers', () => {
  test.each<[string, number, UnreadReserve?]>([
    ['{"max_tokens":12}', 12],
    ['{"max_completion_tokens":13}', 13],
    ['{"max_tokens":12,"max_completion_tokens":13}', 13],
    ['{"max_tokens":13,"max_completion_tokens":12}', 13],
    ['{"max_tokens":13,"max_completion_tokens":-1}', 1000, 'number'],
    ['{}', 70, 'missing'],
  ])('%s', (body, ...expected) => expect(read(several, body)).toEqual(expected))
})

test('each rule reads its own number, and other rules keep their units', () => {
  const own = tokens({ paths: [['n']], otherwise: 5 }, 'own')
  const fixed = makePolicy('fixed', 10, 60_000, { cost: { reserve: 3 } })
  const charges = chargeAll('ip:a', [plain, fixed, own])
  expect(charges.some(readsUnits)).toBe(true)
  expect(chargeAll('ip:a', [fixed]).some(readsUnits)).toBe(false)
  const noted: string[] = []
  const telemetry = { reserveUnread: ({ name }: { name: string }) => void noted.push(name) }
  const read = withRequestedUnits([...charges, ...charges], Buffer.from('{"max_tokens":12}'), telemetry)
  expect(read.map(({ units }) => units)).toEqual([12, undefined, 5, 12, undefined, 5])
  expect(noted).toEqual(['own'])
})

test('numbers anywhere else in the body do not matter', () => {
  const name = fc.string({ maxLength: 8 }).filter((text) => !/^max.?tokens$/i.test(text))
  const other = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom<unknown>(
        'max_tokens',
        '"max_tokens":5',
        '\\',
        null,
        5,
        true,
        'max_tokens":{[',
        '🚀\u2028',
      ),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.oneof(name, fc.constant('max_tokens')), tie('value'), { maxKeys: 3 }),
    ),
  })).value
  const members = fc.uniqueArray(fc.tuple(name, other), { selector: ([key]) => key, maxLength: 4 })
  fc.assert(
    fc.property(
      members,
      members,
      fc.integer({ min: 1, max: 999 }),
      fc.integer({ min: 0, max: 2 }),
      (before, after, n, indent) => {
        const body = JSON.stringify(
          Object.fromEntries<unknown>([...before, ['max_tokens', n], ...after]),
          null,
          indent,
        )
        expect(read(plain, body)).toEqual([n])
      },
    ),
    { numRuns: runs(500) },
  )
})

describe('the cost of a request, read from its head', () => {
  function request(...rawHeaders: string[]): Http1Request {
    const declared = rawHeaders[rawHeaders.indexOf('Content-Length') + 1]
    const isChunked = rawHeaders.includes('Transfer-Encoding')
    const hasLength = rawHeaders.includes('Content-Length') && declared !== '0'
    const framing = isChunked ? 'chunked' : hasLength ? 'length' : 'none'
    const head = { method: 'POST', url: '/', version: '1.1', fields: asRead(rawHeaders), framing } as never
    return new Http1Request(new Socket(), head, { onBodyConsumed: () => undefined })
  }
  const length = ['Content-Length', '16']
  const type = 'Content-Type'

  test.each<[UnreadReserve | undefined, string[]]>([
    [undefined, length],
    [undefined, ['Content-Length', '65536']],
    [undefined, ['Transfer-Encoding', 'chunked']],
    [undefined, [...length, type, 'application/json']],
    [undefined, [...length, type, 'Application/JSON; charset=UTF-8']],
    [undefined, [...length, type, 'application/json;charset="utf-8"']],
    [undefined, [...length, type, 'application/vnd.api+json; version=1']],
    [undefined, [...length, type, 'application/json', 'Content-Encoding', 'identity']],
    ['missing', []],
    ['missing', ['Content-Length', '0']],
    ['size', ['Content-Length', '65537']],
    ['encoding', [...length, 'Content-Encoding', 'gzip']],
    ['encoding', [...length, 'Content-Encoding', 'identity', 'content-encoding', 'br']],
    ['type', [...length, type, 'application/x-www-form-urlencoded']],
    ['type', [...length, type, 'multipart/form-data; boundary=application/json']],
    ['type', [...length, type, 'text/plain']],
    ['type', [...length, type, 'application/json, text/plain']],
    ['type', [...length, type, 'application/json; a=b, text/plain']],
    ['type', [...length, type, 'application/json; charset=utf-16']],
    ['type', [...length, type, 'application/json; charset=utf-7; charset=utf-8']],
    ['type', [...length, type, 'application/json', 'content-type', 'application/json']],
    ['type', [...length, type, '']],
  ])('%s: %j', (expected, rawHeaders) => expect(whyUnread(request(...rawHeaders))).toBe(expected))
})
