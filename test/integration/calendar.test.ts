import { performance } from 'node:perf_hooks'
import type { Redis } from 'ioredis'
import { beforeEach, describe, expect, test } from 'vitest'
import { calendar } from '../../proxy/limits/algorithms/calendar/calendar.ts'
import { describePolicy, keyOf } from '../../proxy/limits/store/redis/keys.ts'
import { addOnceScript } from '../../proxy/limits/store/redis/scripts/add-once.ts'
import { decideScript } from '../../proxy/limits/store/redis/scripts/decide.ts'
import { PolicyArguments } from '../../proxy/limits/store/redis/scripts/policy-arguments.ts'
import type { RedisScript } from '../../proxy/limits/store/redis/run-script.ts'
import type { Policy } from '../../proxy/policy.ts'
import { instants } from '../support/calendar/instants.ts'
import { makePolicy, newClient } from '../support/limiter/charges.ts'
import { openRedis } from '../support/redis/redis-limiters.ts'
import { expiryMs } from '../support/redis/expiry.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { wallClockMs } from '../support/calendar/wall-clock.ts'

/*
 * Windows of the calendar in Redis: the clock of Redis determines the window, and gateways whose own clocks differ agree on the border.
 * Tests set the clock of the scripts where they cannot wait for the end of a month; keys still expire by the real clock of Redis.
 */

let redis: Redis

beforeEach(async () => {
  redis = openRedis(await freshRedis())
})

const byCalendar = (quota: number, calendar: Policy['calendar'] & object, windowMs: number): Policy =>
  makePolicy('by-calendar', quota, windowMs, { algorithm: 'calendar', calendar })

/** Runs a script about one counter, at a Redis time that the test sets. If a second time is given, the window ends in between. */
function runAt(
  { source }: RedisScript,
  clockMs: number,
  keys: readonly string[],
  args: readonly string[],
  laterMs?: number,
): Promise<unknown> {
  const readings = [clockMs, laterMs ?? clockMs].map(
    (ms) => `{ '${Math.floor(ms / 1000)}', '${(ms % 1000) * 1000}' }`,
  )
  const clock = `local readings = { ${readings.join(', ')} }
local call = function(command, ...)
  if command == 'TIME' then return #readings > 1 and table.remove(readings, 1) or readings[1] end
  ${laterMs === undefined ? '' : "if command == 'PTTL' then return 0 end"}
  return redis.pcall(command, ...)
end`
  return redis.eval(source.replace('local call = redis.pcall', clock), keys.length, ...keys, ...args)
}

async function decideAt(
  policy: Policy,
  client: string,
  clockMs: number,
  gatewayMs: number,
  laterMs?: number,
) {
  const described = describePolicy(policy, 'sluice:1', () => gatewayMs)
  const policies = new PolicyArguments()
  const number = policies.numberOf(described)
  const args = [...policies.toArguments(), '1', number]
  const { algorithms } = policies
  const reply = await runAt(decideScript(algorithms), clockMs, [keyOf(described, client)], args, laterMs)
  const [left, resetUs] = reply as readonly number[]
  return { left, resetMs: Number(resetUs) / 1000 }
}

const lengthsMs = { hour: 3_600_000, day: 86_400_000, week: 7 * 86_400_000, month: 31 * 86_400_000 }

describe('a window of the calendar in Redis', () => {
  test.each([0, 3_000, -3_000, 3_500_000, -3_500_000])(
    'ends where the table of instants says, with the clock of the gateway %i ms ahead',
    async (aheadMs) => {
      const found = await Promise.all(
        instants.map(async ([timezone, unit, at, start]) => {
          const atMs = Date.parse(at)
          const policy = byCalendar(5, { unit, timezone }, lengthsMs[unit])
          const { left, resetMs } = await decideAt(policy, newClient(), atMs, atMs + aheadMs)
          expect(left).toBe(4)
          return [timezone, unit, at, start, new Date(atMs + resetMs).toISOString().replace('.000Z', 'Z')]
        }),
      )
      expect(found).toEqual(instants)
    },
  )

  test.each([-50, 50])(
    'a window of the calendar in Redis ends at the hour where the clock of the gateway is %i hours ahead',
    async (hours) => {
      const atMs = Date.parse('2027-05-05T05:40:00Z')
      const policy = byCalendar(5, { unit: 'hour' }, 3_600_000)
      const { resetMs } = await decideAt(policy, newClient(), atMs, atMs + hours * 3_600_000)
      expect(resetMs).toBe(20 * 60_000)
    },
  )

  test.each([
    ['ends later', -20_000],
    ['ends sooner', 20_000],
    ['does not end', undefined],
  ])('a counter that %s than its window is kept, with the border of the window', async (_, laterMs) => {
    const policy = byCalendar(5, { unit: 'month' }, lengthsMs.month)
    const described = describePolicy(policy, 'sluice:1')
    const client = newClient()
    const key = keyOf(described, client)
    const nowMs = wallClockMs()
    await decideAt(policy, client, nowMs, nowMs)
    const border = await expiryMs(redis, key)
    expect(new Date(border).toISOString()).toMatch(/-01T00:00:00.000Z$/)
    await (laterMs === undefined ? redis.persist(key) : redis.pexpireat(key, border - laterMs))
    expect((await decideAt(policy, client, nowMs, nowMs)).left).toBe(3)
    expect(await expiryMs(redis, key)).toBe(border)
  })

  test('a window of the calendar in Redis gets requests admitted without Redis only while their window runs', async () => {
    const policy = byCalendar(50, { unit: 'month' }, lengthsMs.month)
    const atMs = Date.parse('2027-01-31T23:59:50Z')
    const client = newClient()
    const add = async (clockMs: number, leftMs: number, mark: string, laterMs?: number): Promise<unknown> => {
      const described = describePolicy(policy, 'sluice:1', () => atMs)
      const policies = new PolicyArguments()
      const number = policies.numberOf(described)
      const values = calendar.redis.addedValues({ endsAtMs: leftMs, counted: [7] }, 0, policy)
      const args = ['1000', ...policies.toArguments(), number, String(values.length), ...values]
      const keys = [mark, keyOf(described, client)]
      return runAt(addOnceScript(policies.algorithms), clockMs, keys, args, laterMs)
    }
    const used = async (): Promise<number> =>
      49 - ((await decideAt({ ...policy, mode: 'shadow' }, client, wallClockMs(), wallClockMs())).left ?? NaN)
    await add(atMs, 10_000, 'mark:1')
    expect(await used()).toBe(7)
    // By the gateway's clock two seconds of the window remain; by the clock of Redis the next window has begun.
    await add(atMs + 12_000, 2_000, 'mark:2')
    expect(await used()).toBe(8)
    // The window ends between two readings of the clock of Redis.
    await add(atMs + 9_999, 1, 'mark:3', atMs + 10_001)
    expect(await used()).toBe(0)
  })

  test('a request that finds its window of the calendar ended since Redis read its clock counts in the next', async () => {
    const policy = byCalendar(5, { unit: 'month' }, lengthsMs.month)
    const client = newClient()
    const key = keyOf(describePolicy(policy, 'sluice:1'), client)
    const nowMs = wallClockMs()
    for (let i = 0; i < 5; i++) await decideAt(policy, client, nowMs, nowMs)
    const border = await expiryMs(redis, key)
    const { left, resetMs } = await decideAt(policy, client, border - 1, border, border + 1)
    const end = await expiryMs(redis, key)
    expect(left).toBe(4)
    expect(new Date(end).toISOString()).toMatch(/-01T00:00:00.000Z$/)
    expect(end).toBeGreaterThan(border)
    expect(resetMs).toBe(end - border - 1)
  })

  test('a window of the calendar in Redis admits the quota in each window, of two gateways whose clocks are three seconds apart', async () => {
    const windowMs = 1_000
    const client = keyOf(describePolicy(byCalendar(5, { unit: 'hour' }, windowMs), 'sluice:1'), newClient())
    /** Uses the seconds around the gateway's own time in place of hours, for which a test cannot wait. */
    const windowText = (gatewayMs: number): string => {
      const startMs = Math.floor(gatewayMs / windowMs) * windowMs
      return [windowMs, ...[-1, 0, 1, 2].map((n) => startMs + n * windowMs)].join(' ')
    }
    const { source } = decideScript(new Set([calendar]))
    const windows = new Map<number, { asked: number; admitted: number }>()
    const endsAtMs = performance.now() + 4_000
    const askOn = async (aheadMs: number): Promise<void> => {
      while (performance.now() < endsAtMs) {
        const described = ['calendar', 'enforce', '5', windowText(wallClockMs() + aheadMs), 'one']
        const reply = await redis.eval(source, 1, client, '1', ...described, '1', '1')
        const [left, resetUs, clockUs] = reply as readonly [number, number, number]
        const border = Math.round((clockUs + resetUs) / 1000 / windowMs)
        const { asked, admitted } = windows.get(border) ?? { asked: 0, admitted: 0 }
        windows.set(border, { asked: asked + 1, admitted: admitted + (left >= 0 ? 1 : 0) })
      }
    }
    await Promise.all([askOn(-1_500), askOn(1_500)])
    expect(windows.size).toBeGreaterThanOrEqual(4)
    // The first and the last window are not covered from beginning to end.
    for (const { asked, admitted } of windows.values()) expect(admitted).toBe(Math.min(5, asked))
  })
})
