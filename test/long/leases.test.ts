import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { send, startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { eventually } from '../support/wait/eventually.ts'

const from = '127.0.0.7'

test('requests in flight of a killed gateway count for another 15 s, those of a living one as long as they last', async () => {
  let arrived = 0
  const backend = await startBackend(() => void (arrived += 1))
  const env = {
    UPSTREAM_URL: backend.url,
    REDIS_URL: await freshRedis(),
    CONFIG_FILE: writeConfigFile('limits: [{ name: export, match: GET /export, concurrency: 2 }]\n'),
  }
  const [killed, living, other] = await Promise.all([startGateway(env), startGateway(env), startGateway(env)])
  const hold = async (gateway: GatewayProcess): Promise<void> => {
    const before = arrived
    send(gateway.port, 'GET', '/export', { from }).catch(() => undefined)
    await eventually('the request has arrived', () => expect(arrived).toBe(before + 1))
  }
  const statusOf = async (): Promise<number> => {
    const before = arrived
    let status = 0
    send(other.port, 'GET', '/export', { from }).then(
      (reply) => (status = reply.status),
      () => undefined,
    )
    await eventually('the request is refused or has arrived', () => status !== 0 || arrived > before)
    return status === 0 ? 200 : status
  }

  await hold(killed)
  await hold(living)
  expect(await statusOf()).toBe(429)
  await killed.process.stop('SIGKILL')
  const killedAtMs = performance.now()
  expect(await statusOf()).toBe(429)
  let status = 429
  while (status === 429 && performance.now() - killedAtMs < 40_000) {
    await sleep(500)
    status = await statusOf()
  }
  const freedAfterMs = performance.now() - killedAtMs
  expect(status).toBe(200)
  // The lease was renewed up to 4 s before the replica was killed, and lasts 15 s after its renewal.
  expect(freedAfterMs).toBeGreaterThan(10_000)
  expect(freedAfterMs).toBeLessThan(20_000)
  // The request of the living replica still counts, and so does the one that has just passed.
  await sleep(17_000)
  expect(await statusOf()).toBe(429)
})
