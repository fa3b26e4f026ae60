import fc from 'fast-check'
import { Redis } from 'ioredis'
import { beforeAll, expect, test } from 'vitest'
import { algorithmOf } from '../../proxy/limits/algorithms/registry.ts'
import { createDescriber, keyOf } from '../../proxy/limits/store/redis/keys.ts'
import { runScript } from '../../proxy/limits/store/redis/run-script.ts'
import { commandOf } from '../../proxy/limits/store/redis/scripts/command.ts'
import { decideScript } from '../../proxy/limits/store/redis/scripts/decide.ts'
import { PolicyArguments } from '../../proxy/limits/store/redis/scripts/policy-arguments.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { closeAfterTest, openAnsweringLimiter, openRedis } from '../support/redis/redis-limiters.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import type { RedisServer } from '../support/redis/redis-server.ts'
import { runs } from '../support/random/runs.ts'
import { eventually } from '../support/wait/eventually.ts'

/*
 * Fixed windows without reservations have dedicated scripts. These must answer every request as the general script does, and leave the same
 * data, even if a key holds something else or the user lacks a right.
 */

const policies = [
  makePolicy('one', 1, 3_600_000),
  makePolicy('few', 3, 7_200_000),
  makePolicy('many', 100, 60_000),
  makePolicy('watched', 2, 1_800_000, { mode: 'shadow' }),
]
const everyRight = ['+incr', '+pttl', '+pexpire', '+decr', '+del']

const request = fc.record({
  client: fc.constantFrom('a', 'b', 'c', 'broken'),
  chosen: fc.subarray([0, 1, 2, 3], { minLength: 1 }),
})
/** Batches whose requests share their policies, and batches whose requests each have their own. */
const batch = fc.oneof(
  fc.array(request, { minLength: 1, maxLength: 12 }),
  fc.array(request, { minLength: 1, maxLength: 12 }).map((requests) => {
    const [{ chosen } = { chosen: [0] }] = requests
    return requests.map(({ client }) => ({ client, chosen }))
  }),
  fc.array(
    request.map(({ client, chosen }) => ({ client, chosen: chosen.slice(0, 1) })),
    { minLength: 1, maxLength: 12 },
  ),
)
const history = fc.record({
  batches: fc.array(batch, { minLength: 1, maxLength: 8 }),
  lacking: fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, fc.constantFrom(...everyRight)),
  /** Whether windows are longer than their policies say, as after Redis's clock was set back. */
  isSetBack: fc.boolean(),
})

type Batch = readonly { readonly client: string; readonly chosen: readonly number[] }[]

let server: RedisServer

beforeAll(async () => {
  server = await startRedisServer()
})

function requestsOf(asked: Batch): ReturnType<typeof chargeAll>[] {
  return asked.map(({ client, chosen }) =>
    chargeAll(
      client,
      chosen.flatMap((i) => policies[i] ?? []),
    ),
  )
}

async function askPlain(redis: Redis, asked: Batch): Promise<unknown> {
  const { script, keys, args } = commandOf(requestsOf(asked), createDescriber('plain'), () => '')
  expect(script).not.toBe(decideScript(new Set([algorithmOf({ algorithm: 'fixed' })])))
  return runScript(redis, script, keys.length, [...keys, ...args])
}

async function askUsual(redis: Redis, asked: Batch): Promise<unknown> {
  const describe = createDescriber('usual')
  const described = new PolicyArguments()
  const keys: string[] = []
  const args: string[] = []
  for (const charges of requestsOf(asked)) {
    args.push(String(charges.length))
    for (const { policy, partitionKey } of charges) {
      keys.push(keyOf(describe(policy), partitionKey))
      args.push(described.numberOf(describe(policy)))
    }
  }
  const script = decideScript(described.algorithms)
  return runScript(redis, script, keys.length, [...keys, ...described.toArguments(), ...args])
}

/** Rounds times to a few seconds, because the times of two commands differ. The windows are much longer. */
function roughly(reply: unknown): unknown[] {
  if (!Array.isArray(reply)) throw new TypeError('not an array')
  return reply.map((value: unknown, i) => {
    if (typeof value !== 'number') return withoutScript(String(value))
    return i % 2 === 1 ? Math.round(value / 20_000_000) : value
  })
}

/** Removes the script and its line, which some engines name after an error. */
function withoutScript(text: string): string {
  return text.replace(/^@user_script: \d+: /, '').replace(/ script: .*?\.(?= \()/, '')
}

async function readAll(redis: Redis, prefix: string): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {}
  for (const key of await redis.keys(`${prefix}:*`)) {
    const isCounter = (await redis.type(key)) === 'string'
    const content = isCounter ? [await redis.get(key), Math.round((await redis.pttl(key)) / 20_000)] : 'list'
    found[key.slice(prefix.length)] = content
  }
  return found
}

test('the scripts for plain fixed windows reply like the script for everything, and leave the same keys', async () => {
  const operator = openRedis(server.url)
  await fc.assert(
    fc.asyncProperty(history, async ({ batches, lacking, isSetBack }) => {
      await operator.flushall()
      const rights = everyRight.filter((right) => right !== lacking)
      await operator.call(
        'ACL',
        'SETUSER',
        'limited',
        'reset',
        'on',
        '>secret',
        '~*',
        '+eval',
        '+evalsha',
        ...rights,
      )
      const limited = closeAfterwards(
        new Redis(server.url.replace('redis://', 'redis://limited:secret@'), { enableReadyCheck: false }),
      )
      for (const prefix of ['plain', 'usual']) {
        const describe = createDescriber(prefix)
        for (const policy of policies) await operator.rpush(keyOf(describe(policy), 'broken'), 'x')
        const [one] = policies
        if (isSetBack && one) await operator.set(keyOf(describe(one), 'a'), 1, 'PX', 2 * one.windowMs)
      }
      for (const asked of batches) {
        const [plain, usual] = [await askPlain(limited.redis, asked), await askUsual(limited.redis, asked)]
        expect(roughly(plain)).toEqual(roughly(usual))
        expect(await readAll(operator, 'plain')).toEqual(await readAll(operator, 'usual'))
      }
      limited.close()
    }),
    { numRuns: runs(300) },
  )
})

test('Redis has the script of new rules before the first request under them', async () => {
  const operator = openRedis(server.url)
  await operator.call('CONFIG', 'RESETSTAT')
  const limiter = await openAnsweringLimiter(server.url)
  const plans = { quotas: { gold: 43 } }
  await limiter.decide(chargeAll(newClient(), [makePolicy('planned', 41, 60_000, { plans })]))
  // For each connection, and at the first policy with plans, the gateway checks whether it may run scripts by their digest, using the
  // digest of a script that does not exist. A script that looks for lost counters is sent when Redis does not know it.
  await eventually('rights are checked', async () =>
    expect(await operator.info('errorstats')).toMatch(/NOSCRIPT:count=3\b/),
  )
  await operator.call('CONFIG', 'RESETSTAT')
  const [few, many] = [makePolicy('new-few', 31, 3_600_000), makePolicy('new-many', 47, 60_000)]
  const planned = makePolicy('new-planned', 53, 60_000, { plans: { quotas: { gold: 59 } } })
  for (const asked of [[few], [few, many], [planned]])
    expect(await limiter.decide(chargeAll(newClient(), asked))).toMatchObject({ outcome: 'allowed' })
  const stats = await operator.info('errorstats')
  expect(stats).toContain('# Errorstats')
  expect(stats).not.toContain('NOSCRIPT')
})

function closeAfterwards(redis: Redis): { readonly redis: Redis; readonly close: () => void } {
  return closeAfterTest({ redis, close: () => redis.disconnect() })
}
