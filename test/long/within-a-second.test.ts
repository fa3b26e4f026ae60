import { beforeAll, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

/*
 * The docs promise that each replica knows of a ban or a reset within a second. Here with real replicas; that a busy machine
 * may pause is allowed for by taking the median. test/unit/limits/store/redis/poll.test.ts has the time between two looks.
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

/** Milliseconds until all others answer with the status, in the middle of several rounds. */
async function medianMs(
  prepare: (from: string) => Promise<unknown>,
  operate: (from: string) => Promise<unknown>,
  status: number,
): Promise<number> {
  const times: number[] = []
  for (let round = 1; round <= rounds; round++) {
    const from = `127.0.${status % 100}.${round}`
    await prepare(from)
    await operate(from)
    const beganAtMs = performance.now()
    for (const other of replicas.slice(1))
      await eventually(`the replica answers ${status}`, async () =>
        expect(await login(other, from)).toBe(status),
      )
    times.push(performance.now() - beganAtMs)
  }
  return times.toSorted((a, b) => a - b)[(rounds - 1) / 2] ?? NaN
}

test('each replica knows of a ban within a second', async () => {
  const ban = (from: string) =>
    askOperator(replicas[0] as HostedGateway, 'POST', '/api/clients/ban', { client: { ip: from }, for: '1h' })
  expect(await medianMs(() => Promise.resolve(), ban, 429)).toBeLessThan(1_000)
})

test('each replica knows of a reset within a second', async () => {
  const exhaust = async (from: string): Promise<void> => {
    for (const replica of replicas) for (let i = 0; i < 6; i++) await login(replica, from)
    for (const replica of replicas) expect(await login(replica, from)).toBe(429)
  }
  const reset = (from: string) =>
    askOperator(replicas[0] as HostedGateway, 'POST', '/api/clients/reset', { client: from })
  expect(await medianMs(exhaust, reset, 200)).toBeLessThan(1_000)
})
