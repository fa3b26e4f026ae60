import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { MemoryLimiter } from '../../proxy/limits/store/memory/limiter.ts'
import { createDescriber, keyOf, keyPrefixOf } from '../../proxy/limits/store/redis/keys.ts'
import { decideScript } from '../../proxy/limits/store/redis/scripts/decide.ts'
import { algorithms } from '../../proxy/limits/algorithms/registry.ts'
import { PolicyArguments } from '../../proxy/limits/store/redis/scripts/policy-arguments.ts'
import type { Policy } from '../../proxy/policy.ts'
import { createCountingModel, type CountingModel } from '../support/limiter/counting-model.ts'
import { chargeAll, makePolicy } from '../support/limiter/charges.ts'
import { runs } from '../support/random/runs.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { wallClockMs } from '../support/calendar/wall-clock.ts'

/*
 * Any sequence of requests at any times, under a mix of sliding and fixed windows, must be answered as by a model that keeps every
 * admission. Requests often come exactly when another one leaves the window, or a moment before or after.
 */

const policies = [
  makePolicy('narrow', 3, 1000, { algorithm: 'sliding' }),
  makePolicy('wide', 40, 2500, { algorithm: 'sliding' }),
  makePolicy('watched', 2, 750, { algorithm: 'sliding', mode: 'shadow' }),
  makePolicy('one', 1, 250, { algorithm: 'sliding' }),
  makePolicy('fixed', 5, 1500),
]
/** For Redis, whose expiry follows real time: a fixed window that does not end during the test. */
const hour = makePolicy('hour', 30, 3_600_000)

/** Milliseconds. Exact in a double, and as microseconds. */
const tick = 1 / 8

const stepMs = fc.oneof(
  fc.constantFrom(0, 0, tick, 250 - tick, 250, 250 + tick, 750, 1000 - tick, 1000, 2500),
  fc.nat(3200).map((ticks) => ticks * tick),
)
const request = fc.record({
  client: fc.constantFrom('a', 'b'),
  chosen: fc.subarray([0, 1, 2, 3, 4], { minLength: 1 }),
})
const turns = fc.array(fc.record({ stepMs, requests: fc.array(request, { minLength: 1, maxLength: 3 }) }), {
  minLength: 1,
  maxLength: 60,
})

function pick(chosen: readonly number[], table: readonly Policy[]): Policy[] {
  return chosen.flatMap((index) => table[index] ?? [])
}

test('embedded counters decide as the model does', () => {
  fc.assert(
    fc.property(turns, (turns) => {
      let nowMs = 1000
      const limiter = new MemoryLimiter({ maxKeys: 100, seed: 7, now: () => nowMs })
      const model = createCountingModel()
      for (const { stepMs, requests } of turns) {
        nowMs += stepMs
        for (const { client, chosen } of requests) {
          const applied = pick(chosen, policies)
          expect(limiter.decide(chargeAll(client, applied))).toEqual(model.decide(client, applied, nowMs))
        }
      }
    }),
    { numRuns: runs(2000) },
  )
})

let redis: Redis
beforeAll(async () => {
  redis = new Redis(await freshRedis())
})
afterAll(() => redis.disconnect())

/** The script, with a clock passed as its last argument. */
const { source } = decideScript(new Set(algorithms))
const clockedScript = source.replace("must('TIME')", '{ 0, ARGV[#ARGV] }')

test('the script in Redis decides as the model does, with the requests of a turn in one command', async () => {
  expect(clockedScript).not.toBe(source)
  // A day ahead of the clock of Redis, so that no key expires in real time.
  const startUs = (wallClockMs() + 86_400_000) * 1000
  const table = policies.with(4, hour)
  let run = 0
  await fc.assert(
    fc.asyncProperty(turns, async (turns) => {
      run += 1
      const model = createCountingModel()
      let nowMs = 0
      for (const { stepMs, requests } of turns) {
        nowMs += stepMs
        const asked = requests.map(({ client, chosen }) => ({
          client: `${client}${run}`,
          applied: pick(chosen, table),
        }))
        const reply = await ask(asked, startUs + nowMs * 1000)
        expect(reply).toEqual(asked.flatMap(({ client, applied }) => expected(model, client, applied, nowMs)))
      }
    }),
    { numRuns: runs(1500) },
  )
})

const describe = createDescriber(keyPrefixOf(undefined))

type Asked = { readonly client: string; readonly applied: readonly Policy[] }

/** The remaining quota of each charge, or -1 if it is refused; under a sliding window also the milliseconds until it grows. */
async function ask(asked: readonly Asked[], nowUs: number): Promise<unknown[]> {
  const charges = asked.flatMap(({ client, applied }) =>
    applied.map((policy) => ({ client, described: describe(policy) })),
  )
  const policies = new PolicyArguments()
  const requests = asked.flatMap(({ applied }) => [
    String(applied.length),
    ...applied.map((policy) => policies.numberOf(describe(policy))),
  ])
  const reply = (await redis.eval(clockedScript, charges.length, [
    ...charges.map(({ client, described }) => keyOf(described, client)),
    ...policies.toArguments(),
    ...requests,
    String(nowUs),
  ])) as number[]
  return charges.flatMap(({ described }, index) => [
    reply[2 * index],
    described.algorithm.name === 'sliding' ? (reply[2 * index + 1] ?? NaN) / 1000 : 'real time',
  ])
}

function expected(
  model: CountingModel,
  client: string,
  applied: readonly Policy[],
  nowMs: number,
): unknown[] {
  return model
    .decide(client, applied, nowMs)
    .states.flatMap(({ policy, exceeded, remaining, resetMs }) => [
      exceeded ? -1 : remaining,
      policy.algorithm === 'sliding' ? resetMs : 'real time',
    ])
}
