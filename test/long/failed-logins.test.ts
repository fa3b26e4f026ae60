import { beforeAll, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { send, startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { passes } from '../support/wait/passes.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { testSeed } from '../support/random/seed.ts'

const random = seededRandom(testSeed())

const quota = 5
const rounds = 20

/** A client that sends one request at a time. */
const patient = '127.4.0.1'

let env: Record<string, string>
let gateways: GatewayProcess[]
/** The right and wrong passwords of each client that reached the backend. */
const seen = new Map<string, { right: number; wrong: number }>()

beforeAll(async () => {
  const backend = await startBackend((request, response) => {
    const client = String(request.headers['x-forwarded-for'])
    const counts = seen.get(client) ?? { right: 0, wrong: 0 }
    seen.set(client, counts)
    const isRight = request.headers['x-password'] === 'right'
    counts[isRight ? 'right' : 'wrong'] += 1
    // Checking a password takes some time, so that many checks are concurrent.
    setTimeout(() => response.writeHead(isRight ? 200 : 401).end(), client === patient ? 0 : 5)
  })
  env = {
    UPSTREAM_URL: backend.url,
    REDIS_URL: await freshRedis(),
    CONFIG_FILE: writeConfigFile(
      `limits: [{ name: login, match: POST /login, requests: ${quota}, window: 1h, countStatus: [401, 403] }]\n`,
    ),
    // This test is about counts, so the gateway waits for Redis even on a slow machine.
    STORE_TIMEOUT: '5s',
  }
  gateways = await Promise.all([startGateway(env), startGateway(env), startGateway(env)])
})

/** The status of a guess, or undefined if its gateway was killed. */
function guess(replica: number, from: string, password: string): Promise<number | undefined> {
  const port = gateways[replica]?.port ?? 0
  return send(port, 'POST', '/login', { from, headers: { 'x-password': password } }).then(
    ({ status }) => status,
    () => undefined,
  )
}

function countOf(statuses: readonly (number | undefined)[], status: number): number {
  return statuses.filter((one) => one === status).length
}

test('five of 200 parallel wrong guesses at each of three replicas reach the backend, in each round', async () => {
  for (let round = 1; round <= rounds; round++) {
    const from = `127.1.0.${round}`
    const statuses = await Promise.all(
      Array.from({ length: 600 }, (_, index) => guess(index % 3, from, 'wrong')),
    )
    expect(seen.get(from)).toEqual({ right: 0, wrong: quota })
    expect([countOf(statuses, 401), countOf(statuses, 429)]).toEqual([quota, 600 - quota])
  }
})

test('10,000 right passwords pass', async () => {
  for (let index = 0; index < 10_000; index++) expect(await guess(index % 3, patient, 'right')).toBe(200)
})

test('right guesses between them do not let more wrong ones pass', async () => {
  for (let round = 1; round <= rounds; round++) {
    const from = `127.2.0.${round}`
    const statuses: (number | undefined)[] = []
    for (let burst = 0; burst < 10; burst++) {
      statuses.push(
        ...(await Promise.all(
          Array.from({ length: 30 }, () =>
            guess(Math.floor(random() * 3), from, random() < 0.7 ? 'right' : 'wrong'),
          ),
        )),
      )
    }
    // Right passwords use part of the quota while they are checked, and give it back.
    for (let index = 0; (seen.get(from)?.wrong ?? 0) < quota && index < 100; index++)
      statuses.push(await guess(index % 3, from, 'wrong'))
    statuses.push(
      ...(await Promise.all(Array.from({ length: 30 }, (_, index) => guess(index % 3, from, 'wrong')))),
    )
    const { right, wrong } = seen.get(from) ?? { right: 0, wrong: 0 }
    expect(wrong).toBe(quota)
    expect([countOf(statuses, 200), countOf(statuses, 401)]).toEqual([right, wrong])
  }
})

test('a replica that is killed among wrong guesses lets no more of them pass', async () => {
  let passed = 0
  for (let round = 1; round <= rounds; round++) {
    const from = `127.3.0.${round}`
    const killed = round % 3
    const guesses = Array.from({ length: 300 }, async (_, index) => {
      await passes(index % 40)
      return guess(index % 3, from, index % 5 === 0 ? 'right' : 'wrong')
    })
    await passes(random() * 40)
    await gateways[killed]?.process.stop('SIGKILL')
    await Promise.all(guesses)
    gateways[killed] = await startGateway(env)
    const more = await Promise.all(Array.from({ length: 60 }, (_, index) => guess(index % 3, from, 'wrong')))
    expect(more).not.toContain(undefined)
    const { wrong } = seen.get(from) ?? { wrong: 0 }
    expect(wrong).toBeLessThanOrEqual(quota)
    passed += wrong
  }
  // Guesses in flight when their replica was killed stay counted, right or wrong. So a few are missing, but not most.
  expect(passed).toBeGreaterThan(rounds)
})
