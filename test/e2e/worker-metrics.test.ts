import { describe, expect, test } from 'vitest'
import { combineHealth, type HealthReport } from '../../proxy/admin/health.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { spawnNode } from '../support/gateway/process.ts'
import { parseExposition, type Exposition } from '../support/metrics/prometheus.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { eventually } from '../support/wait/eventually.ts'
import { wallClockMs } from '../support/calendar/wall-clock.ts'

type Cluster = {
  scrape(): Promise<Exposition>
  readiness(): Promise<{ status: number; body: unknown }>
  /** Makes a worker, numbered from 1, carry out an order a number of times. */
  tell(worker: number, order: string, times?: number): Promise<void>
  /** Forks another worker. */
  start(): Promise<void>
}

async function startCluster(workers: number): Promise<Cluster> {
  const primary = spawnNode('test/support/gateway/cluster-process.ts', {}, [`${workers}`])
  const [, port] = await primary.waitForLine(/^port (\d+)$/)
  const get = async (path: string): Promise<Response> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`)
    if (response.status >= 500 && path !== '/readyz') throw new Error(`${path} failed:\n${primary.output()}`)
    return response
  }
  return {
    scrape: async () => parseExposition(await (await get('/metrics')).text()),
    readiness: async () => {
      const response = await get('/readyz')
      return { status: response.status, body: await response.json() }
    },
    tell: async (worker, order, times = 1) => {
      await get(`/api/tell?worker=${worker}&order=${order}&times=${times}`)
    },
    start: async () => {
      await get('/api/start')
    },
  }
}

const okRequests = (found: Exposition): number => found.value('sluice_requests_total', { class: '2xx' })

describe.concurrent('metrics of several workers', () => {
  test('metrics of several workers are their sum, or another fitting aggregate', async () => {
    const cluster = await startCluster(3)
    await cluster.tell(1, 'count', 1)
    await cluster.tell(2, 'count', 20)
    await cluster.tell(3, 'count', 300)
    await cluster.tell(2, 'open-breaker')
    const found = await cluster.scrape()
    expect(okRequests(found)).toBe(321)
    expect(found.value('sluice_decisions_total', { policy: 'login', outcome: 'allowed' })).toBe(321)
    expect(found.value('sluice_request_duration_seconds_count')).toBe(321)
    expect(found.value('sluice_request_duration_seconds_bucket', { le: '0.005' })).toBe(0)
    expect(found.value('sluice_request_duration_seconds_bucket', { le: '0.01' })).toBe(321)
    expect(found.value('sluice_request_duration_seconds_bucket', { le: '+Inf' })).toBe(321)
    expect(found.value('sluice_request_duration_seconds_sum')).toBeCloseTo(3.21)
    expect(found.value('sluice_table_entries', { table: 'counters' })).toBe(15)
    expect(found.value('sluice_connections')).toBe(3)
    expect(found.value('sluice_processes')).toBe(3)
    expect(found.value('sluice_store_breaker_open')).toBe(1)
    expect(found.value('sluice_build_info', { version: '1.2.3' })).toBe(1)
    // Node's own metrics: the memory of three processes, and a start time, which is not summed up.
    expect(found.value('sluice_process_resident_memory_bytes')).toBeGreaterThan(90_000_000)
    // The metric is a time of the wall clock.
    const age = wallClockMs() / 1000 - found.value('sluice_process_start_time_seconds')
    expect(Math.abs(age)).toBeLessThan(60)
  })

  test('counters never run backwards when a worker is replaced', async () => {
    const cluster = await startCluster(2)
    await cluster.tell(1, 'count', 100)
    await cluster.tell(2, 'count', 10)
    expect(okRequests(await cluster.scrape())).toBe(110)
    await cluster.tell(1, 'exit')
    const without = await cluster.scrape()
    expect(okRequests(without)).toBe(110)
    expect(without.value('sluice_table_evictions_total', { table: 'counters' })).toBe(2)
    expect(without.value('sluice_processes')).toBe(1)
    expect(without.value('sluice_connections')).toBe(1)

    await cluster.start()
    await cluster.tell(3, 'count', 1)
    await cluster.tell(2, 'exit')
    const replaced = await cluster.scrape()
    expect(okRequests(replaced)).toBe(111)
    expect(replaced.value('sluice_request_duration_seconds_bucket', { le: '+Inf' })).toBe(111)
  })

  test('a scrape uses the last metrics of a worker that hangs, counts it as unresponsive, and does not wait for it', async () => {
    const cluster = await startCluster(2)
    await cluster.tell(1, 'count', 5)
    await cluster.tell(2, 'count', 7)
    const before = await cluster.scrape()
    expect(okRequests(before)).toBe(12)
    expect(before.value('sluice_unresponsive_workers')).toBe(0)
    await cluster.tell(1, 'hang')
    await cluster.tell(2, 'count', 1)
    // The first worker hangs forever. The other may be late once, too.
    await eventually('a scrape has the last of the one and the present of the other', async () => {
      const found = await cluster.scrape()
      expect(okRequests(found)).toBe(13)
      expect(found.value('sluice_unresponsive_workers')).toBe(1)
    })
  })

  test('concurrent scrapes all get the sum over the workers', async () => {
    const cluster = await startCluster(2)
    await cluster.tell(2, 'count', 7)
    const found = await Promise.all(Array.from({ length: 20 }, () => cluster.scrape()))
    expect(found.map(okRequests)).toEqual(Array(20).fill(7))
  })

  test('without any worker, a scrape has no metrics but the number of unresponsive workers', async () => {
    const cluster = await startCluster(0)
    const { samples } = await cluster.scrape()
    expect(samples.map(({ name, value }) => [name, value])).toEqual([['sluice_unresponsive_workers', 0]])
    expect((await cluster.readiness()).status).toBe(503)
  })
})

test('with Redis, the capacity of bans and overrides is that of the processes that keep copies of them', async () => {
  const capacities = async (env: Record<string, string>): Promise<number[]> => {
    const { adminPort } = await startHosted({ REDIS_URL: await freshRedis(), ...env })
    const found = parseExposition(await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text())
    return ['bans', 'overrides'].map((table) => found.value('sluice_table_capacity', { table }))
  }
  const ofOne = await capacities({})
  expect(await capacities({ WORKERS: '2' })).toEqual(ofOne.map((capacity) => 2 * capacity))
})

describe.concurrent('health of several workers', () => {
  test('health of several workers is ready if one worker is; the store is unavailable if it is for one worker', async () => {
    const cluster = await startCluster(2)
    expect((await cluster.readiness()).status).toBe(503)
    await cluster.tell(2, 'ready')
    expect(await cluster.readiness()).toEqual({
      status: 200,
      body: { status: 'ready', store: 'available', upstream: 'unknown' },
    })
    await cluster.tell(1, 'lose-backend')
    expect((await cluster.readiness()).body).toMatchObject({ upstream: 'unavailable' })
    await cluster.tell(2, 'exit')
    expect((await cluster.readiness()).status).toBe(503)
  })

  const report = (
    status: HealthReport['status'],
    store: HealthReport['store'] = 'available',
  ): HealthReport => ({
    status,
    store,
    upstream: 'available',
  })

  const withServers = (available: number, ejected: number): HealthReport => ({
    ...report('ready'),
    servers: { available, ejected, unhealthy: 0 },
  })

  test.each([
    ['ready', [], { status: 'starting', store: 'unknown', upstream: 'unknown' }],
    ['ready', [report('starting'), report('starting')], { status: 'starting' }],
    ['ready', [report('starting'), report('ready')], { status: 'ready' }],
    ['stopping', [report('ready')], { status: 'stopping' }],
    ['ready', [report('ready', 'unknown'), report('ready', 'available')], { store: 'available' }],
    ['ready', [report('ready', 'unavailable'), report('ready', 'available')], { store: 'unavailable' }],
    ['ready', [report('ready', 'memory')], { store: 'memory' }],
    [
      'ready',
      [withServers(3, 0), report('ready'), withServers(1, 2), withServers(2, 1)],
      { servers: { available: 1, ejected: 2, unhealthy: 0 } },
    ],
  ] as const)('a primary that is %s, with %o', (own, reports, expected) => {
    expect(combineHealth(own, reports)).toMatchObject(expected)
  })
})
