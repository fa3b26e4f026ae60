import { beforeAll, expect, test } from 'vitest'
import { LEASE_MS, MAX_LEASE_AGE_MS } from '../../proxy/limits/store/leases/lease-store.ts'
import { startBackend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { askOften } from '../support/leases/ask-often.ts'
import { watchForBusyMachine } from '../support/load/busy-machine.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed } from '../support/limiter/decisions.ts'
import { startReplicas } from '../support/limiter/limiters.ts'
import { closeAfterTest, openAnsweringLimiter } from '../support/redis/redis-limiters.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

/*
 * The docs promise that each replica knows of a ban or a reset within a second, and for how long units are on lease. These tests use real
 * replicas, and take the median, as a busy machine may pause. test/unit/limits/store/redis/poll.test.ts tests the polling interval.
 */

const table = 'limits: [{ name: login, match: POST /login, requests: 5, window: 15m }]\n'
const rounds = 9
let replicas: HostedGateway[]

beforeAll(async () => {
  const { url } = await startBackend()
  const env = { UPSTREAM_URL: url, CONFIG_FILE: writeConfigFile(table), REDIS_URL: await freshRedis() }
  replicas = await Promise.all([1, 2, 3].map(() => startHosted(env)))
})

const login = async (replica: HostedGateway | undefined, from: string): Promise<number | undefined> =>
  (await replica?.send('POST', '/login', { from }))?.status

/** Expects the median time of several rounds to be less than the bound. */
async function expectMedianWithin(
  maxMs: number,
  playRound: (round: number) => Promise<() => Promise<unknown>>,
): Promise<void> {
  const judge = watchForBusyMachine()
  const times: number[] = []
  for (let round = 1; round <= rounds; round++) {
    const timed = await playRound(round)
    const beganAtMs = performance.now()
    await timed()
    times.push(performance.now() - beganAtMs)
  }
  const medianMs = times.toSorted((a, b) => a - b)[(rounds - 1) / 2] ?? NaN
  judge('the median of the rounds', medianMs, maxMs)
}

/** Expects all other replicas to answer with the status within a second. */
function expectToSpread(
  prepare: (from: string) => Promise<unknown>,
  operate: (from: string) => Promise<unknown>,
  status: number,
): Promise<void> {
  return expectMedianWithin(1_000, async (round) => {
    const from = `127.0.${status % 100}.${round}`
    await prepare(from)
    await operate(from)
    return async () => {
      for (const other of replicas.slice(1))
        await eventually(`the replica answers ${status}`, async () =>
          expect(await login(other, from)).toBe(status),
        )
    }
  })
}

test('each replica knows of a ban within a second', async () => {
  const ban = (from: string) =>
    askOperator(replicas[0] as HostedGateway, 'POST', '/api/clients/ban', { client: { ip: from }, for: '1h' })
  await expectToSpread(() => Promise.resolve(), ban, 429)
})

test('each replica knows of a reset within a second', async () => {
  const exhaust = async (from: string): Promise<void> => {
    for (const replica of replicas) for (let i = 0; i < 6; i++) await login(replica, from)
    for (const replica of replicas) expect(await login(replica, from)).toBe(429)
  }
  const reset = (from: string) =>
    askOperator(replicas[0] as HostedGateway, 'POST', '/api/clients/reset', { client: from })
  await expectToSpread(exhaust, reset, 200)
})

test('leased units that nobody uses are given back within a second', async () => {
  const { limiters, operations } = closeAfterTest(await startReplicas(await freshRedis(), 2))
  const policy = makePolicy('api', 50_000, 3_600_000, { lease: 'auto' })
  await expectMedianWithin(MAX_LEASE_AGE_MS, async () => {
    const charges = chargeAll(newClient(), [policy])
    const { decisions, decidedHere } = await askOften(limiters, charges)
    expect(decidedHere).toBeGreaterThan(0)
    return () =>
      eventually('as much is counted as was admitted', async () =>
        expect((await operations.inspect(charges))[0]?.used).toBe(countAllowed(decisions)),
      )
  })
})

test('the plan of a client that is counted on lease holds within a second of its change', async () => {
  const limiter = await openAnsweringLimiter(await freshRedis())
  const plans = { quotas: { small: 10 } }
  const policy = makePolicy('api', 100_000, 3_600_000, { lease: 'auto', plans })
  await expectMedianWithin(1000 + LEASE_MS, async () => {
    const charges = chargeAll(newClient(), [policy])
    const { decidedHere } = await askOften([limiter], charges)
    expect(decidedHere).toBeGreaterThan(0)
    await limiter.plans.set({ partitionKey: charges[0]?.partitionKey ?? '', keyName: 'ip' }, 'small')
    return () =>
      eventually('it is refused by its plan', async () => {
        const { decisions } = await askOften([limiter], charges, { forMs: 10 })
        expect(decisions.at(-1)).toMatchObject({ outcome: 'refused', refusedBy: { plan: 'small' } })
      })
  })
})
