import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readDecision, readDuration } from '../../../proxy/limits/clients/crowdsec/decision.ts'
import { DecisionTable, MAX_DECISIONS } from '../../../proxy/limits/clients/crowdsec/decision-table.ts'
import { StreamReader } from '../../../proxy/limits/clients/crowdsec/stream-reader.ts'
import { parseAddress } from '../../../proxy/request/addresses/ip-address.ts'
import { goDuration } from '../../support/http/local-api.ts'

describe("Go's durations", () => {
  test.each([
    ['3h59m57.6s', 14_397_600],
    ['163h2m1.000000001s', 586_921_000.000001],
    ['59m0s', 3_540_000],
    ['1.5s', 1500],
    ['250ms', 250],
    ['1.5µs', 0.0015],
    ['-4s', -4000],
    ['0s', 0],
    ['0', 0],
  ])('%s is %d ms', (text, ms) => expect(readDuration(text)).toBeCloseTo(ms, 6))

  test.each(['', '-', 's', '4', '4 s', '4d', '1h 2m', 'P1D', '1..5s', '4sx', 'x4s'])(
    '%j is not a duration',
    (text) => {
      expect(readDuration(text)).toBeUndefined()
    },
  )

  test("Go's durations are read as they are written", () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e9, max: 1e9 }), (ms) => {
        expect(readDuration(goDuration(ms)) ?? NaN).toBeCloseTo(ms, 3)
      }),
    )
  })
})

test('only bans of addresses and networks are decisions', () => {
  const sent = { type: 'ban', scope: 'Ip', value: '192.0.2.1', duration: '1m0s' }
  expect(readDecision(sent)).toEqual({ value: '192.0.2.1', leftMs: 60_000 })
  expect(readDecision({ ...sent, scope: 'range' })).toBeDefined()
  for (const change of [{ type: 'captcha' }, { scope: 'Country' }, { value: 7 }, { duration: 'x' }])
    expect(readDecision({ ...sent, ...change })).toBeUndefined()
  for (const other of [null, 'ban', 7, []]) expect(readDecision(other)).toBeUndefined()
})

describe('the stream', () => {
  const read = (pieces: readonly string[]): unknown[] => {
    const found: unknown[] = []
    const reader = new StreamReader((list, decision) => found.push([list, decision]))
    for (const piece of pieces) reader.write(piece)
    reader.end()
    return found
  }

  test('the stream of decisions is read as JSON.parse reads it, wherever its pieces end', () => {
    const text = fc.oneof(
      fc.string(),
      fc.constantFrom('"', '\\', '{', '}', '[', ']', '\\"', 'new', 'deleted'),
    )
    // V8 may confuse an escaped name with another one that begins with a backslash (https://github.com/nodejs/node/issues/63785).
    const name = text.map((drawn) => drawn.replace(/[\0-\x1f"\\\ud800-\udfff]/g, '_'))
    const decision = fc.dictionary(name, fc.oneof(text, fc.integer(), fc.constant(null), fc.array(text)))
    const list = fc.option(fc.array(decision, { maxLength: 4 }))
    const sent = fc.record({ other: text, new: list, deleted: list })
    const cuts = fc.array(fc.nat({ max: 400 }), { maxLength: 6 })
    fc.assert(
      fc.property(sent, cuts, fc.boolean(), (answer, at, isIndented) => {
        const whole = JSON.stringify(answer, null, isIndented ? 2 : undefined)
        const ends = [0, ...at.toSorted((a, b) => a - b), whole.length]
        const pieces = ends.slice(1).map((end, i) => whole.slice(ends[i], end))
        const expected = (['new', 'deleted'] as const).flatMap((name) =>
          (answer[name] ?? []).map((each) => [name, each]),
        )
        expect(read(pieces)).toEqual(expected)
      }),
    )
  })

  test.each([
    '',
    '{',
    '[]',
    '{"message":"access forbidden"}',
    '{"new":[{"a":1}',
    '{"new":[]',
    'null',
    '<html>',
    '{"new":{"value":"192.0.2.1"},"deleted":null}',
    '{"new":null,"deleted":"none"}',
    '{"new": 0}',
    '{"deleted":{}}',
  ])('%j is no stream', (text) => expect(() => read([text])).toThrow())

  test('a decision that is too long is rejected', () => {
    const reader = new StreamReader(() => undefined)
    reader.write('{"new":[{"value":"')
    expect(() => reader.write('x'.repeat(20_000))).toThrow('a decision is too long')
  })
})

describe('the table of CrowdSec decisions', () => {
  const has = (table: DecisionTable, address: string): boolean => table.has(parseAddress(address) ?? [])
  const set = (...decisions: [string, number][]) =>
    ({ crowdsec: 'set', decisions: decisions.map(([value, leftMs]) => ({ value, leftMs })) }) as const

  test('the table of CrowdSec decisions has addresses and networks of both families until they end', () => {
    let nowMs = 0
    const table = new DecisionTable(() => nowMs)
    table.apply(
      set(
        ['192.0.2.1', 1000],
        ['198.51.100.7/24', 2000],
        ['2001:db8::/32', 1000],
        ['2001:db9::1', 1000],
        ['64:ff9b::203.0.113.7', 1000],
      ),
    )
    const listed = [
      '192.0.2.1',
      '::ffff:192.0.2.1',
      '198.51.100.255',
      '2001:db8:ffff::1',
      '2001:db9::1',
      '203.0.113.7',
    ]
    for (const address of listed) expect(has(table, address), address).toBe(true)
    for (const address of ['192.0.2.2', '198.51.101.0', '2001:db7::', '2001:db9::2'])
      expect(has(table, address), address).toBe(false)
    nowMs = 1000
    expect(listed.filter((address) => has(table, address))).toEqual(['198.51.100.255'])
  })

  test('all decisions take the place of those before, once they are complete', () => {
    const table = new DecisionTable(() => 0)
    table.apply(set(['192.0.2.1', 1000]))
    table.apply({ crowdsec: 'begin' })
    table.apply(set(['192.0.2.2', 1000]))
    expect([has(table, '192.0.2.1'), has(table, '192.0.2.2')]).toEqual([true, false])
    // The answer was incomplete: another one replaces it.
    table.apply({ crowdsec: 'begin' })
    table.apply(set(['192.0.2.3', 1000]))
    table.apply({ crowdsec: 'end' })
    expect(['192.0.2.1', '192.0.2.2', '192.0.2.3'].map((address) => has(table, address))).toEqual([
      false,
      false,
      true,
    ])
  })

  test('a copy of the table has the same decisions', () => {
    const values = [
      '192.0.2.1',
      '10.0.0.0/8',
      '0.0.0.0/0',
      '2001:db8::/32',
      '2001:db8::1',
      'd83d:de00::/24',
      '::/0',
    ]
    for (const value of values) {
      const table = new DecisionTable(() => 0)
      expect(table.all()).toBeUndefined()
      table.apply({ crowdsec: 'begin' })
      table.apply(set([value, 1000]))
      table.apply({ crowdsec: 'end' })
      const copy = new DecisionTable(() => 0)
      copy.apply({ crowdsec: 'set', decisions: [...(table.all() ?? [])] })
      for (const address of ['192.0.2.1', '10.1.2.3', '2001:db8::1', '2001:db8::2', 'd83d:de01::'])
        expect(has(copy, address), `${value} ${address}`).toBe(has(table, address))
      copy.apply({ crowdsec: 'delete', values: [value] })
      expect(copy.readUse().size).toBe(0)
    }
  })

  test('the table of CrowdSec decisions is bounded, and counts what it ignores', () => {
    const table = new DecisionTable(() => 0)
    const decisions = Array.from({ length: MAX_DECISIONS + 2 }, (_, i) => ({
      value: `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`,
      leftMs: 1000,
    }))
    table.apply({ crowdsec: 'set', decisions })
    table.apply(set(['no address', 1000], ['10.0.0.1', 2000]))
    expect(table.readUse()).toEqual({ size: MAX_DECISIONS, capacity: MAX_DECISIONS, evictions: 3 })
    expect(has(table, '10.0.0.0')).toBe(true)
  })
})
