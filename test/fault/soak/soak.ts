import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { afterAll, expect, test } from 'vitest'
import { startGateway } from '../../support/gateway/gateway.ts'
import { readUsedBytes } from '../../support/load/memory-use.ts'
import { seededRandom } from '../../support/random/seeded-random.ts'
import { startRelay } from '../../support/network/relay.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'
import { startBreakableRedis } from '../breakable-redis.ts'
import { breakFor, drawFault, type Fault } from '../faults.ts'
import { startLoad } from './load.ts'
import { leastOfQuarters, medianOfQuarters, readProcess, type Sample } from './samples.ts'
import { testSeed } from '../../support/random/seed.ts'
import { eventually } from '../../support/wait/eventually.ts'

/*
 * Runs two gateways with 50,000 clients for a quarter of an hour, with a fault every ten seconds before Redis, in Redis or before the
 * backend: `npm run test:soak`. `SOAK_MINUTES`, `SOAK_RATE` (requests a second) and `TEST_SEED` change that.
 */

const minutes = Number(process.env['SOAK_MINUTES'] ?? 15)
const rate = Number(process.env['SOAK_RATE'] ?? 500)
const seed = testSeed()
const CLIENTS = 50_000
/** Maximum number of connections from the load to each gateway, and from each gateway to the backend. */
const CONNECTIONS = 200
const FAULT_EVERY_MS = 10_000
const MAX_FAULT_MS = 5_000
/** These faults come first, so that memory which an outage takes and the next one reuses does not look like a leak. */
const worst: readonly Pick<Fault, 'site' | 'kind'>[] = [
  { site: 'redis', kind: 'hang' },
  { site: 2, kind: 'swallow' },
  { site: 'redis', kind: 'restart' },
]
/** Allows for descriptors that the admin listener and reconnect attempts use briefly. */
const SPARE_DESCRIPTORS = 5
const SAMPLE_EVERY_MS = 2_000

const limits = `
limits:
  - name: each
    match: GET /
    requests: 20
    window: 60s
  - name: strict
    match: GET /strict
    requests: 20
    window: 60s
    onStoreError: closed
`

const backend = createServer((_, response) => response.end('ok'))
afterAll(() => {
  backend.close()
  backend.closeAllConnections()
})

test(
  `${minutes} minutes of faults from seed ${seed} leave nothing behind`,
  async () => {
    await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve))
    const redis = await startBreakableRedis()
    const backendPort = (backend.address() as AddressInfo).port
    const relays = await Promise.all([redis.port, redis.port, backendPort].map(startRelay))
    const [first, second, before] = relays
    const config = join(makeTemporaryDirectory(), 'sluice.yaml')
    writeFileSync(config, limits)
    const gateways = await Promise.all(
      [first, second].map((relay) =>
        startGateway({
          CONFIG_FILE: config,
          UPSTREAM_URL: `http://127.0.0.1:${before?.port}`,
          REDIS_URL: `redis://127.0.0.1:${relay?.port}`,
          TRUSTED_PROXIES: '127.0.0.1',
          UPSTREAM_TIMEOUT: '2s',
          UPSTREAM_CONNECTIONS: String(CONNECTIONS),
        }),
      ),
    )
    const pids = gateways.map(({ process }) => process.child.pid ?? 0)
    const descriptorsAtRest = pids.map((pid) => readProcess(pid).descriptors)
    const load = startLoad({
      ports: gateways.map(({ port }) => port),
      clients: CLIENTS,
      requestsPerSecond: rate,
      connections: CONNECTIONS,
    })

    const startedAtMs = performance.now()
    const elapsedMs = (): number => performance.now() - startedAtMs
    const untilMs = minutes * 60_000
    const samples: Sample[][] = pids.map(() => [])
    const broken: Fault[] = []

    const takeSamples = async (): Promise<void> => {
      while (elapsedMs() < untilMs) {
        await sleep(SAMPLE_EVERY_MS)
        const keys = await redis.operate(countKeys)
        for (const [index, pid] of pids.entries()) {
          const usedBytes = await readUsedBytes(gateways[index]?.adminPort ?? 0)
          samples[index]?.push({ atMs: elapsedMs(), keys, usedBytes, ...readProcess(pid) })
        }
      }
    }
    const breakThings = async (): Promise<void> => {
      const random = seededRandom(seed)
      while (elapsedMs() + FAULT_EVERY_MS < untilMs) {
        const isWorst = broken.length < worst.length
        const durationMs = isWorst ? MAX_FAULT_MS : 100 + random() * MAX_FAULT_MS
        const drawn = worst[broken.length] ?? drawFault(random, relays.length)
        const fault = { ...drawn, startMs: elapsedMs(), durationMs }
        broken.push(fault)
        await breakFor({ redis, relays }, fault)
        await sleep(FAULT_EVERY_MS - durationMs)
      }
    }
    await Promise.all([takeSamples(), breakThings()])
    await load.stop()

    report(samples, load.statuses, broken)
    for (const ofGateway of samples) expectFlat(ofGateway.slice(Math.floor(ofGateway.length / 3)))
    const expected = new Set<number | 'broken'>([200, 429, 502, 503, 504])
    expect([...load.statuses.keys()].filter((status) => !expected.has(status))).toEqual([])
    for (const [index, pid] of pids.entries()) {
      const most = (descriptorsAtRest[index] ?? 0) + SPARE_DESCRIPTORS
      await eventually('connections have ended', () => readProcess(pid).descriptors <= most)
      expect(samples[index]?.filter(({ descriptors }) => descriptors > most + 2 * CONNECTIONS)).toEqual([])
    }
    for (const { process } of gateways) {
      expect(await process.stop()).toBe(0)
      expect(process.output()).not.toMatch(/"level":(50|60)/)
    }
    await redis.stop()
  },
  minutes * 60_000 + 120_000,
)

/** Counts keys that have not expired. `DBSIZE` also counts expired keys that Redis has not removed yet. */
async function countKeys(redis: Redis): Promise<number> {
  const keys = new Set<string>()
  for await (const found of redis.scanStream({ count: 5_000 }))
    for (const key of found as string[]) keys.add(key)
  return keys.size
}

/** @param samples from after the first third, by when all clients have come by and windows have ended */
function expectFlat(samples: readonly Sample[]): void {
  // A leak makes the memory in use grow. Resident memory varies by half of it, as V8 takes and returns memory.
  const [used = 0, , , usedAtEnd = NaN] = leastOfQuarters(samples, ({ usedBytes }) => usedBytes)
  expect(usedAtEnd, 'memory in use').toBeLessThan(used * 1.1 + 5e6)
  for (const { residentBytes } of samples) expect(residentBytes, 'resident memory').toBeLessThan(used * 2.5)
  // Each request begins at most one window. One in ten comes from few clients, which leaves room for marks of outages.
  for (const { keys } of samples) expect(keys).toBeLessThan(rate * 60)
}

function report(
  samples: readonly (readonly Sample[])[],
  statuses: ReadonlyMap<number | 'broken', number>,
  faults: readonly Fault[],
): void {
  const kinds = Map.groupBy(faults, ({ kind }) => kind)
  const tell = (values: readonly number[]): string => values.map((value) => Math.round(value)).join(' → ')
  console.log(
    [
      `answers: ${[...statuses].map(([status, count]) => `${count} × ${status}`).join(', ')}`,
      `faults: ${Array.from(kinds, ([kind, of]) => `${of.length} × ${kind}`).join(', ')}`,
      ...samples.flatMap((all, index) => {
        const settled = all.slice(Math.floor(all.length / 3))
        return [
          `gateway ${index}, medians of the quarters after the first third of the time:`,
          `  resident MB ${tell(medianOfQuarters(settled, (one) => one.residentBytes / 1e6))}`,
          `  least MB used ${tell(leastOfQuarters(settled, (one) => one.usedBytes / 1e6))}`,
          `  descriptors ${tell(medianOfQuarters(settled, (one) => one.descriptors))}`,
          `  keys in Redis ${tell(medianOfQuarters(settled, (one) => one.keys))}`,
        ]
      }),
    ].join('\n'),
  )
}
