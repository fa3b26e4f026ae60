import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { spawnGateway } from '../support/gateway/gateway.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { testSeed } from '../support/random/seed.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { eventually } from '../support/wait/eventually.ts'

/*
 * A deployment that is rolled back may stop a gateway at any point of its start. The gateway ends with status 0 or by the signal, leaves no
 * process, logs no error, and does not log that it listens after it has begun to stop.
 */

const starts: Readonly<Record<string, () => Promise<Record<string, string>>>> = {
  'counters in memory': () => Promise.resolve({}),
  Redis: async () => ({ REDIS_URL: await freshRedis() }),
  HTTPS: () => Promise.resolve(tlsSettings()),
  workers: () => Promise.resolve({ WORKERS: '2' }),
}
/** When to stop the gateway: 0 when it is spawned, 1 when it listens, more than 1 while the first workers listen. */
const moments = Array.from({ length: 12 }, seededRandom(testSeed())).map((share) => share * 1.2)
const STOPPED = [0, 128 + 15]

test.each(Object.keys(starts))('SIGTERM at any point of a start ends it: %s', async (name) => {
  const env = (await starts[name]?.()) ?? {}
  const startedMs = performance.now()
  const whole = spawnGateway(env)
  await whole.waitForLine(/"msg":"listening"/)
  const startMs = performance.now() - startedMs
  expect(await whole.stop()).toBe(0)

  for (const share of moments) {
    const gateway = spawnGateway(env)
    await sleep(share * startMs)
    const status = await gateway.stop()
    const told = `SIGTERM at ${Math.round(share * 100)} % of a start:\n${gateway.output()}`
    expect(STOPPED, told).toContain(status)
    expect(gateway.output(), told).not.toMatch(/"level":"(?:error|fatal)"|^\s+at |"stopping".*"listening"/ms)
    await eventually(`no process of its group is left; ${told}`, () => !hasGroup(gateway.child.pid))
  }
})

test('workers that are stopped when the first of them listens are not logged as listening', async () => {
  for (let round = 0; round < 5; round++) {
    const gateway = spawnGateway({ WORKERS: '3' })
    await gateway.waitForLine(/"msg":"worker listening"/)
    expect(STOPPED).toContain(await gateway.stop())
    expect(gateway.output()).not.toMatch(/"stopping".*"msg":"listening"/s)
  }
})

function hasGroup(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(-pid, 0)
  } catch {
    return false
  }
}
