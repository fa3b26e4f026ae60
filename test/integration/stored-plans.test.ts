import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { withPlan } from '../../proxy/limits/algorithms/registry.ts'
import type { Charge, Decision, Limiter, PolicyState } from '../../proxy/limits/limiter.ts'
import type { Policy } from '../../proxy/policy.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { runs } from '../support/random/runs.ts'
import { openAnsweringLimiter, openRedis } from '../support/redis/redis-limiters.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import type { RedisServer } from '../support/redis/redis-server.ts'
import { eventually } from '../support/wait/eventually.ts'

/*
 * A request counts as if its rule had the quota of the plan that Redis stores for the client. This holds under every algorithm, beside
 * rules without plans, and among requests of other clients.
 */

const plans = { quotas: { free: 2, pro: 4, 'pro.x-1': 3 } }
const stored: readonly Policy[] = [
  makePolicy('fixed', 1, 3_600_000, { plans }),
  makePolicy('month', 1, 31 * 86_400_000, { algorithm: 'calendar', calendar: { unit: 'month' }, plans }),
  makePolicy('sliding', 1, 3_600_000, { algorithm: 'sliding', plans }),
  makePolicy('bucket', 1, 1_800_000, { algorithm: 'token-bucket', averageWindowMs: 3_600_000, plans }),
  makePolicy('flight', 1, 15_000, { algorithm: 'concurrency', plans }),
  makePolicy('watched', 1, 3_600_000, { mode: 'shadow', plans }),
  // For commands that also contain the plans of another rule.
  makePolicy('other', 1, 3_600_000, { plans: { quotas: { gold: 2, pro: 3 } } }),
]
const usual = [
  makePolicy('usual', 3, 3_600_000),
  makePolicy('slides', 3, 3_600_000, { algorithm: 'sliding' }),
]
const all = [...stored, ...usual]
const written = ['free', 'pro', 'pro.x-1', 'gold', '', 'free=2 pro', '%w', 'constructor', undefined] as const

let server: RedisServer

beforeAll(async () => {
  server = await startRedisServer()
})

type Turn = readonly { readonly client: number; readonly chosen: readonly number[] }[]

const turnOf = (chosen: fc.Arbitrary<number[]>): fc.Arbitrary<Turn> =>
  fc.array(fc.record({ client: fc.nat(2), chosen }), { minLength: 1, maxLength: 8 })
const places = (policies: readonly Policy[]): number[] => policies.map((policy) => all.indexOf(policy))
/** Requests for one unit of one fixed window, which a dedicated script decides. */
const plainTurn = turnOf(
  fc.constantFrom(...places(all.filter(({ algorithm }) => algorithm === 'fixed'))).map((chosen) => [chosen]),
)
const anyTurn = turnOf(fc.subarray(places(all), { minLength: 1, maxLength: 4 }))
/** A rule counts twice if the body is a batch. A charge that did not fit may then fit again, once the request was refused. */
const batchTurn = fc
  .constantFrom(...places(stored))
  .chain((place) => turnOf(fc.constantFrom([place], [place, place])))

const history = fc.record({
  namesOfClients: fc.array(fc.constantFrom(...written), { minLength: 3, maxLength: 3 }),
  turns: fc.array(fc.oneof(anyTurn, plainTurn, batchTurn), { minLength: 1, maxLength: 5 }),
})

/** Applies the plan of the client to the charges. */
function chooseHere(charges: readonly Charge[], name: string | undefined): Charge[] {
  return charges.map(({ policy, ...charge }) => ({
    ...charge,
    policy:
      policy.plans && name !== undefined && Object.hasOwn(policy.plans.quotas, name)
        ? withPlan(policy, name)
        : // The client is known to have no plan.
          { ...policy, plan: '' },
  }))
}

/** Rounds times to a few seconds. */
function roughly({ policy, exceeded, remaining, resetMs, reservation }: PolicyState): object {
  const { name, quota, windowMs } = policy
  return {
    name,
    quota,
    windowMs,
    exceeded,
    remaining,
    resetMs: Math.round(resetMs / 20_000),
    isReserved: reservation !== undefined,
    reservedUnder: reservation?.charge.policy.quota,
  }
}

function summarize(decision: Decision): object {
  if (decision.outcome === 'unavailable') return decision
  return {
    outcome: decision.outcome,
    refusedBy: decision.outcome === 'refused' ? decision.refusedBy.name : undefined,
    states: decision.states.map(roughly),
  }
}

test('plans in Redis count as if the gateway had chosen them', async () => {
  const redis = openRedis(server.url)
  const [there, here] = [await openAnsweringLimiter(server.url), await openAnsweringLimiter(server.url)]
  await fc.assert(
    fc.asyncProperty(history, async ({ namesOfClients, turns }) => {
      const [ours, theirs] = [0, 1].map(() => namesOfClients.map(() => newClient()))
      if (!ours || !theirs) return
      for (const [i, name] of namesOfClients.entries())
        if (name !== undefined) await redis.set(`sluice:1:{${ours[i]}}:plan:ip`, name)
      for (const turn of turns) {
        const charges = (clients: readonly string[]) =>
          turn.map(({ client, chosen }) =>
            chargeAll(
              clients[client] ?? '',
              chosen.flatMap((i) => all[i] ?? []),
            ),
          )
        const askAll = (limiter: Limiter, asked: readonly (readonly Charge[])[]) =>
          Promise.all(asked.map(async (each) => limiter.decide(each)))
        const read = await askAll(there, charges(ours))
        const chosen = await askAll(
          here,
          charges(theirs).map((each, i) => chooseHere(each, namesOfClients[turn[i]?.client ?? 0])),
        )
        expect(read.map(summarize)).toEqual(chosen.map(summarize))
        for (const [at, decision] of read.entries()) {
          if (decision.outcome === 'unavailable') continue
          const name = namesOfClients[turn[at]?.client ?? 0]
          for (const { policy, isPlanUnknown } of decision.states) {
            const isPlan = name !== undefined && name !== '' && policy.plans !== undefined
            const isOfRule = isPlan && Object.hasOwn(policy.plans.quotas, name)
            expect(policy.plan).toBe(isOfRule ? name : undefined)
            expect(isPlanUnknown).toBe(isPlan && policy.plan === undefined ? true : undefined)
          }
        }
      }
    }),
    { numRuns: runs(150) },
  )
  expect(there.telemetry).toMatchObject({ failures: 0 })
})

test('a refusal under a plan is asked about again, one by another rule is not', async () => {
  const redis = openRedis(server.url)
  const limiter = await openAnsweringLimiter(server.url)
  const client = newClient()
  const [fixed] = stored
  const [plain] = usual
  if (!fixed || !plain) throw new RangeError('two rules')
  const outcome = async (policies: readonly Policy[]) =>
    (await limiter.decide(chargeAll(client, policies))).outcome
  await redis.set(`sluice:1:{${client}}:plan:ip`, 'free')
  for (const expected of ['allowed', 'allowed', 'refused', 'refused'])
    expect(await outcome([fixed])).toBe(expected)
  await redis.set(`sluice:1:{${client}}:plan:ip`, 'pro')
  expect(await outcome([fixed])).toBe('allowed')
  for (const expected of ['allowed', 'refused']) expect(await outcome([plain, fixed])).toBe(expected)
  for (let i = 0; i < 2; i++) await outcome([plain])
  expect(await outcome([plain, fixed])).toBe('refused')
  const before = limiter.telemetry.answers
  expect(await outcome([plain, fixed])).toBe('refused')
  expect(limiter.telemetry.answers).toBe(before)
})

test('a user who may not read plans is named in the log, and rules count as without Redis', async () => {
  const operator = openRedis(server.url)
  const rights = [
    '+eval',
    '+evalsha',
    '+info',
    '+incr',
    '+incrby',
    '+decr',
    '+del',
    '+pttl',
    '+pexpire',
    '+set',
    '+lindex',
  ]
  await operator.call('ACL', 'SETUSER', 'blind', 'reset', 'on', '>secret', '~*', ...rights)
  const limiter = await openAnsweringLimiter(server.url.replace('redis://', 'redis://blind:secret@'))
  const [fixed] = stored
  if (!fixed) throw new RangeError('a rule')
  const client = newClient()
  await operator.set(`sluice:1:{${client}}:plan:ip`, 'pro')
  expect(await limiter.decide(chargeAll(client, [fixed]))).toMatchObject({
    withoutStore: true,
    states: [{ remaining: 0, policy: { quota: 1 } }],
  })
  await eventually('the log names the command', () =>
    expect(limiter.logLines.map(({ reason }) => reason).join()).toContain('GET)'),
  )
  expect(limiter.storeState()).toBe('unavailable')
  await operator.call('ACL', 'SETUSER', 'blind', '+get', '+mget')
  await eventually('Redis decides', () => expect(limiter.storeState()).toBe('available'))
})

test('a reservation of a bucket is given back at the rate of the plan', async () => {
  const limiter = await openAnsweringLimiter(server.url)
  const redis = openRedis(server.url)
  const client = newClient()
  const bucket = makePolicy('refunded', 10, 3_600_000, {
    algorithm: 'token-bucket',
    plans: { quotas: { pro: 100 } },
    cost: { reserve: 10, settle: { kind: 'header', name: 'x-cost' } } as unknown as NonNullable<
      Policy['cost']
    >,
  })
  await redis.set(`sluice:1:{${client}}:plan:ip`, 'pro')
  const decision = await limiter.decide(chargeAll(client, [bucket]))
  if (decision.outcome !== 'allowed') throw new Error(decision.outcome)
  const reservation = decision.states[0]?.reservation
  expect(reservation).toMatchObject({ units: 10, charge: { policy: { plan: 'pro', quota: 100 } } })
  if (reservation) limiter.settle(reservation, 0)
  await eventually('it is given back', async () =>
    expect(await limiter.inspect(chargeAll(client, [bucket]))).toMatchObject([
      { used: 0, policy: { plan: 'pro' } },
    ]),
  )
})

test('the list of plans in Redis has as many as asked for', async () => {
  const redis = openRedis(server.url)
  await redis.flushall()
  const limiter = await openAnsweringLimiter(server.url)
  expect(await limiter.plans.list(10)).toEqual({ plans: [], isAll: true })
  await redis.eval("for i = 1, 5000 do redis.call('SET', 'sluice:1:{c' .. i .. '}:plan:ip', 'pro') end", 0)
  const list = await limiter.plans.list(10)
  expect(list).toMatchObject({ isAll: false, plans: Array(10).fill({ plan: 'pro' }) })
  await eventually('all are listed', async () =>
    expect(await limiter.plans.list(10_000)).toMatchObject({ isAll: true, plans: { length: 5000 } }),
  )
})

test('a plan of one key does not apply to the same value of another key', async () => {
  const redis = openRedis(server.url)
  const limiter = await openAnsweringLimiter(server.url)
  const client = newClient()
  const rules = [
    makePolicy('signed', 1, 3_600_000, { plans, partition: [{ kind: 'jwt', name: 'sub' }] }),
    makePolicy('claimed', 1, 3_600_000, { plans, partition: [{ kind: 'header', name: 'x-user' }] }),
  ]
  await redis.set(`sluice:1:{${client}}:plan:jwt:sub`, 'pro')
  const quotas = async () =>
    (await limiter.inspect(chargeAll(client, rules))).map(({ policy }) => policy.quota)
  expect(await quotas()).toEqual([4, 1])
  // Each rule alone, which the script for plain windows decides, and both together.
  for (const asked of [rules.slice(0, 1), rules.slice(1), rules]) {
    const decision = await limiter.decide(chargeAll(client, asked))
    if (decision.outcome === 'unavailable') throw new Error(decision.outcome)
    for (const { policy } of decision.states) expect(policy.quota).toBe(policy.name === 'signed' ? 4 : 1)
  }
  await eventually('it is listed', async () =>
    expect(await limiter.plans.list(10_000)).toMatchObject({
      plans: expect.arrayContaining([{ partitionKey: client, keyName: 'jwt:sub', plan: 'pro' }]) as unknown,
    }),
  )
})

// This test is last, because the scripts stay loaded for the rest of the file.
test('rules with more plans than Redis gets scripts for count by them', async () => {
  const redis = openRedis(server.url)
  const limiter = await openAnsweringLimiter(server.url)
  const countScripts = async () =>
    Number(/number_of_cached_scripts:(\d+)/.exec(await redis.info('memory'))?.[1])
  const client = newClient()
  await redis.set(`sluice:1:{${client}}:plan:ip`, 'pro')
  const before = await countScripts()
  for (let quota = 2; quota <= 200; quota++) {
    const policy = makePolicy(`of-${quota}`, 1, 3_600_000, { plans: { quotas: { free: 1, pro: quota } } })
    expect(await limiter.decide(chargeAll(client, [policy]))).toMatchObject({
      outcome: 'allowed',
      states: [{ remaining: quota - 1, policy: { plan: 'pro', quota } }],
    })
  }
  expect((await countScripts()) - before).toBeLessThan(150)
})

test('a sliding window keeps the count of a large plan when requests admitted without Redis are added', async () => {
  const away = await startRedisServer()
  const limiter = await openAnsweringLimiter(away.url, 200)
  const slides = makePolicy('outage', 2, 3_600_000, {
    algorithm: 'sliding',
    plans: { quotas: { pro: 50 } },
    partition: [{ kind: 'header', name: 'x-user' }],
  })
  const client = newClient()
  const redis = openRedis(away.url)
  await redis.set(`sluice:1:{${client}}:plan:header:x-user`, 'pro')
  const charges = chargeAll(client, [slides])
  for (let asked = 0; asked < 20; asked++)
    expect(await limiter.decide(charges)).toMatchObject({ outcome: 'allowed' })
  await away.signal('SIGSTOP')
  await eventually('Redis is given up', async () => {
    await limiter.decide(chargeAll(newClient(), [slides]))
    return limiter.storeState() === 'unavailable'
  })
  expect(await limiter.decide(charges)).toMatchObject({ outcome: 'allowed' })
  await away.signal('SIGCONT')
  await eventually('Redis decides', () => limiter.storeState() === 'available')
  expect(await redis.llen(`sluice:1:{${client}}:outage:3600000:sliding`)).toBe(21)
})
