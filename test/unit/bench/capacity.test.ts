import fc from 'fast-check'
import { expect, test } from 'vitest'
import { wakeUpUs, type Costs } from '../../../bench/capacity/costs.ts'
import { EventQueue } from '../../../bench/capacity/event-queue.ts'
import { planFor } from '../../../bench/capacity/plan.ts'
import type { SetUp } from '../../../bench/capacity/set-up.ts'
import { simulate } from '../../../bench/capacity/simulation.ts'

const costs: Costs = {
  machine: { date: '', processor: '', node: '', redis: '' },
  redis: {
    wakeUs: [
      { idleUs: 100, us: 10 },
      { idleUs: 10_000, us: 50 },
    ],
    commandUs: { fixed: 5, sliding: 7, 'token-bucket': 7 },
    chargeUs: { fixed: 1, sliding: 2, 'token-bucket': 3 },
  },
  gateway: { requestUs: 40, commandUs: 10, decisionUs: 2 },
  network: { commandIn: 100, commandOut: 5, chargeIn: 50, chargeOut: 20 },
  clientBytes: { fixed: 130, sliding: 380, 'token-bucket': 190 },
}

const small: SetUp = {
  gateways: 4,
  nodes: 3,
  decisionsPerSecond: 4_000,
  rules: 2,
  algorithm: 'fixed',
  roundTripUs: 500,
  seconds: 1,
  seed: 1,
}

test('the simulation handles events by time, and simultaneous ones in order of arrival', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20)), (times) => {
      const queue = new EventQueue<number>()
      for (const [index, atUs] of times.entries()) queue.add(atUs, index)
      const handled = Array.from(times, () => queue.next()?.event)
      const sorted = times
        .map((atUs, index) => ({ atUs, index }))
        .sort((a, b) => a.atUs - b.atUs || a.index - b.index)
      expect(handled).toEqual(sorted.map(({ index }) => index))
      expect(queue.next()).toBeUndefined()
    }),
  )
})

test('the cost to wake Redis up grows with the logarithm of its sleep, between measured points', () => {
  const { wakeUs } = costs.redis
  expect([1, 100, 1_000, 10_000, 1e9].map((idleUs) => wakeUpUs(wakeUs, idleUs))).toEqual([10, 10, 30, 50, 50])
})

test('equal seeds simulate the same, others something else', () => {
  expect(simulate(small, costs)).toEqual(simulate(small, costs))
  expect(simulate({ ...small, seed: 2 }, costs).decided).not.toBe(simulate(small, costs).decided)
})

test('a request that does not queue takes a round trip, two turns of its gateway, and the time of Redis', () => {
  const { latency, redisUsADecision } = simulate(
    { ...small, gateways: 1, nodes: 1, decisionsPerSecond: 20, seconds: 20 },
    costs,
  )
  // Redis has mostly slept for longer than the longest measured sleep.
  expect(redisUsADecision).toBeLessThan(50 + 5 + 2)
  expect(redisUsADecision).toBeGreaterThan(45 + 5 + 2)
  expect(latency.p50Us).toBeCloseTo(500 + (40 + 10) + 2 + (50 + 5 + 2), 0)
})

test('requests that arrive at the same time share a command', () => {
  const arrivalsUs = [100, 100, 100, 5_000, 9_000, 9_000]
  const one = { ...small, gateways: 1, nodes: 1, arrivalsUs }
  expect(simulate(one, costs)).toMatchObject({ decided: 6, decisionsACommand: 2 })
})

test('gateways in one process take turns', () => {
  const gateways = { ...small, gateways: 8, nodes: 1, roundTripUs: 1 }
  const apart = simulate(gateways, costs)
  const together = simulate({ ...gateways, areGatewaysInOneProcess: true }, costs)
  expect(together.decided).toBe(apart.decided)
  expect(together.decisionsACommand).toBeGreaterThanOrEqual(apart.decisionsACommand)
  expect(together.latency.p99Us).toBeGreaterThan(apart.latency.p99Us)
})

test('Redis is as busy as the commands that it gets, and each gateway as its requests', () => {
  const awake = { ...costs, redis: { ...costs.redis, wakeUs: [{ idleUs: 1, us: 0 }] } }
  const { redisBusy, gatewayBusy, decisionsACommand, decided } = simulate({ ...small, seconds: 5 }, awake)
  const [commands, gatewayUs] = [decided / decisionsACommand, decided * (40 + 2)]
  expect(redisBusy.mean * 3 * 5e6).toBeCloseTo(commands * 5 + decided * 2, 0)
  expect(gatewayBusy.mean * 4 * 5e6).toBeCloseTo(gatewayUs + commands * 10, 0)
})

test('the busier Redis is, the more decisions share a command', () => {
  const slow = { ...costs, redis: { ...costs.redis, commandUs: { ...costs.redis.commandUs, fixed: 500 } } }
  const few = simulate({ ...small, nodes: 1, decisionsPerSecond: 500 }, slow)
  const many = simulate({ ...small, nodes: 1, decisionsPerSecond: 20_000 }, slow)
  expect(few.decisionsACommand).toBeLessThan(1.3)
  expect(many.decisionsACommand).toBeGreaterThan(8)
  expect(many.redisBusy.mean).toBeLessThan(1.01)
})

const tenants = fc.record({
  count: fc.integer({ min: 1, max: 5 }),
  share: fc.constantFrom(0.2, 0.9),
  quota: fc.integer({ min: 1, max: 800 }),
  windowMs: fc.constantFrom(100, 250, 1_000),
  isLeased: fc.boolean(),
})

test('without failures no tenant gets more than its quota, with leases and without, and only leases refuse early', () => {
  fc.assert(
    fc.property(tenants, fc.integer({ min: 1, max: 9 }), fc.nat(1_000), (drawn, gateways, seed) => {
      const upgrade = { fromSeconds: 0.2, atATime: 1, restartSeconds: 0.1 }
      const { tenants: seen } = simulate(
        { ...small, seconds: 2, gateways, seed, tenants: drawn, upgrade },
        costs,
      )
      expect(seen.overQuota).toBe(0)
      if (!drawn.isLeased) expect(seen.refusedEarly).toBe(0)
    }),
    { numRuns: 30 },
  )
})

test('while a master does not answer, its tenants get at most a quota more from each gateway in each window, and no others', () => {
  const failure = { node: 0, atSeconds: 0.5, promotedAfterSeconds: 1, replicationLagMs: 1 }
  const quota = 10
  const tenants = { count: 3, share: 0.9, quota, windowMs: 1_000, isLeased: false }
  const { tenants: seen, seconds } = simulate({ ...small, seconds: 4, tenants, failure }, costs)
  expect(seen.overQuota).toBeGreaterThan(0)
  // In two windows, for one of the tenants.
  expect(seen.overQuota).toBeLessThanOrEqual(2 * quota * small.gateways)
  expect(seconds.map(({ withoutRedis }) => withoutRedis > 0)).toEqual([true, true, false, false])
  const others = { ...tenants, count: 2 }
  const elsewhere = { ...failure, node: 2 }
  const { tenants: far } = simulate({ ...small, seconds: 4, tenants: others, failure: elsewhere }, costs)
  expect(far).toMatchObject({ overQuota: 0, refusedEarly: 0 })
})

test('a plan has as many processes as keep each below its share of a core', () => {
  const demand = {
    decisionsPerSecond: 100_000,
    rules: 2,
    algorithm: 'fixed',
    clients: 1_000_000,
    roundTripUs: 500,
    busiestClient: 0,
    busy: 0.5,
    gateways: undefined,
    masters: undefined,
  } as const
  const plan = planFor(demand, costs, 10_000)
  expect(plan.gateways.busy).toBeLessThan(0.53)
  expect(plan.masters.busy).toBeLessThanOrEqual(0.5)
  expect(plan.masters.busy).toBeGreaterThan(0.25)
  expect(plan.memoryBytes).toBe(260_000_000)
  expect(plan.failsFirst.atDecisionsPerSecond).toBeGreaterThan(150_000)
})
