import perfHooks from 'node:perf_hooks'
import { doAtOnce } from '../../../shared/steps.ts'
import { describe, expect, test, vi } from 'vitest'
import { createMetrics, type Metrics } from '../../../proxy/telemetry/metrics/metrics.ts'
import {
  renderMetrics,
  watchProcess,
  type MetricSnapshot,
} from '../../../proxy/telemetry/metrics/prometheus.ts'
import type { Policy } from '../../../proxy/policy.ts'
import { parseExposition, type Exposition } from '../../support/metrics/prometheus.ts'

const readNode = watchProcess('sluice_')

function policyNamed(name: string): Policy {
  const partition = [{ kind: 'ip' }] as const
  return {
    name,
    quota: 30,
    windowMs: 900_000,
    algorithm: 'fixed',
    mode: 'enforce',
    onStoreError: 'local',
    partition,
  }
}

function metricsFor(policies: readonly Policy[]): Metrics {
  return createMetrics({ policies, limitsEnabled: true, version: '1.2.3', readNode })
}

async function scrape(metrics: Metrics): Promise<Exposition> {
  return parseExposition(await renderMetrics([await metrics.takeSnapshot()]))
}

const login = policyNamed('login')
const share = policyNamed('share')

describe('counts reported by the request path', () => {
  test('requests are counted by plan, also one with a name that every object has', async () => {
    const plans = ['free', 'constructor', 'toString', 'hasOwnProperty', 'none']
    const metrics = metricsFor([login])
    for (const plan of [...plans, ...plans]) metrics.telemetry.planRead(login, plan)
    const found = await scrape(metrics)
    const counts = plans.map((plan) => found.value('sluice_plan_requests_total', { policy: 'login', plan }))
    expect(counts).toEqual([2, 2, 2, 2, 2])
  })

  test('requests are counted by status class, and by none where the client left first', async () => {
    const metrics = metricsFor([])
    for (const status of [200, 204, 299, 301, 404, 429, 500, 101, 0, 0]) {
      metrics.telemetry.requestFinished(status, 1)
    }
    const found = await scrape(metrics)
    const counts = ['1xx', '2xx', '3xx', '4xx', '5xx', 'none'].map((name) =>
      found.value('sluice_requests_total', { class: name }),
    )
    expect(counts).toEqual([1, 3, 1, 2, 1, 2])
    expect(found.value('sluice_request_duration_seconds_count')).toBe(10)
  })

  test('a status outside the range of HTTP is not counted', async () => {
    const metrics = metricsFor([])
    for (const status of [999, -100, NaN, 2 ** 40]) metrics.telemetry.requestFinished(status, 1)
    const found = await scrape(metrics)
    const counted = found.samples.filter((sample) => sample.name === 'sluice_requests_total')
    expect(counted.every((sample) => sample.value === 0)).toBe(true)
  })

  test('decisions are counted by policy and outcome', async () => {
    const metrics = metricsFor([login, share])
    metrics.telemetry.decided(login, 'allowed')
    metrics.telemetry.decided(login, 'allowed')
    metrics.telemetry.decided(login, 'refused')
    metrics.telemetry.decided(share, 'shadow')
    metrics.telemetry.decided(share, 'unavailable')
    const found = await scrape(metrics)
    const count = (policy: string, outcome: string): number =>
      found.value('sluice_decisions_total', { policy, outcome })
    expect(count('login', 'allowed')).toBe(2)
    expect(count('login', 'refused')).toBe(1)
    expect(count('login', 'shadow')).toBe(0)
    expect(count('share', 'shadow')).toBe(1)
    expect(count('share', 'unavailable')).toBe(1)
  })

  test('requests are counted by how much of the limit they used', async () => {
    const metrics = metricsFor([login, share])
    for (const outcome of [
      'allowed',
      'allowed',
      'local',
      'refused',
      'shadow',
      'open',
      'unavailable',
    ] as const)
      metrics.telemetry.decided(login, outcome)
    metrics.telemetry.nearLimit(login)
    const found = await scrape(metrics)
    const count = (policy: string, outcome: string): number =>
      found.value('sluice_limited_requests_total', { policy, outcome })
    expect([count('login', 'within'), count('login', 'near'), count('login', 'over')]).toEqual([2, 1, 2])
    expect([count('share', 'within'), count('share', 'near'), count('share', 'over')]).toEqual([0, 0, 0])
    doAtOnce(metrics.telemetry.tableChanged([share], []))
    const names = (await scrape(metrics)).samples.flatMap(({ labels }) => labels['policy'] ?? [])
    expect(names).not.toContain('login')
  })

  test('removed routes are not reported', async () => {
    const metrics = metricsFor([])
    for (const name of ['kept', 'gone']) metrics.telemetry.ofUpstream(name).upstreamAnswered(1)
    doAtOnce(metrics.telemetry.tableChanged([], ['kept']))
    const labels = (await scrape(metrics)).samples.flatMap(({ labels }) => labels['upstream'] ?? [])
    // No series is reported for `upstream` either, because nothing is sent to it.
    expect(new Set(labels)).toEqual(new Set(['kept']))
    const found = await scrape(metrics)
    expect(found.value('sluice_upstream_duration_seconds_count', { upstream: 'kept' })).toBe(1)
  })

  test('a histogram has cumulative buckets in seconds, a sum and a count', async () => {
    const metrics = metricsFor([])
    for (const durationMs of [0, 0.25, 0.26, 99, 5_000]) metrics.telemetry.storeAnswered(durationMs)
    const found = await scrape(metrics)
    const bucket = (le: string): number => found.value('sluice_store_duration_seconds_bucket', { le })
    expect(bucket('0.00025')).toBe(2)
    expect(bucket('0.0005')).toBe(3)
    expect(bucket('0.1')).toBe(4)
    expect(bucket('1')).toBe(4)
    expect(bucket('+Inf')).toBe(5)
    expect(found.value('sluice_store_duration_seconds_count')).toBe(5)
    expect(found.value('sluice_store_duration_seconds_sum')).toBeCloseTo(5.09951)
    expect(found.types.get('sluice_store_duration_seconds')).toBe('histogram')
  })

  test('an invalid duration is ignored', async () => {
    const metrics = metricsFor([])
    metrics.telemetry.upstreamAnswered(NaN)
    metrics.telemetry.upstreamAnswered(-1)
    metrics.telemetry.upstreamAnswered(Infinity)
    metrics.telemetry.upstreamAnswered(7)
    const found = await scrape(metrics)
    expect(found.value('sluice_upstream_duration_seconds_count', { upstream: 'default' })).toBe(1)
    expect(found.value('sluice_upstream_duration_seconds_sum', { upstream: 'default' })).toBe(0.007)
  })

  test('rejections, failures, errors and the breaker', async () => {
    const metrics = metricsFor([])
    const { telemetry } = metrics
    telemetry.requestRejected('body-too-large')
    telemetry.upstreamFailed('timeout')
    telemetry.storeFailed()
    telemetry.errorCaught('request')
    telemetry.errorCaught('process')
    telemetry.breakerChanged('open', '')
    telemetry.storeEvicted(7)
    const open = await scrape(metrics)
    expect(open.value('sluice_rejected_requests_total', { reason: 'body-too-large' })).toBe(1)
    expect(open.value('sluice_rejected_requests_total', { reason: 'target' })).toBe(0)
    expect(open.value('sluice_upstream_errors_total', { upstream: 'default', kind: 'timeout' })).toBe(1)
    expect(open.value('sluice_store_errors_total')).toBe(1)
    expect(open.value('sluice_uncaught_errors_total', { place: 'request' })).toBe(1)
    expect(open.value('sluice_uncaught_errors_total', { place: 'process' })).toBe(1)
    expect(open.value('sluice_store_breaker_open')).toBe(1)
    expect(open.value('sluice_store_evicted_keys')).toBe(7)
    expect(() => open.value('sluice_store_node_breaker_open', { node: '' })).toThrow('0 samples')
    telemetry.breakerChanged('open', '10.0.0.7:6379')
    telemetry.breakerChanged('closed', '')
    const partly = await scrape(metrics)
    expect(partly.value('sluice_store_breaker_open')).toBe(1)
    expect(partly.value('sluice_store_node_breaker_open', { node: '10.0.0.7:6379' })).toBe(1)
    telemetry.breakerChanged('closed', '10.0.0.7:6379')
    expect((await scrape(metrics)).value('sluice_store_breaker_open')).toBe(0)
  })

  test('connections and tunnels go up and down', async () => {
    const metrics = metricsFor([])
    const { telemetry } = metrics
    telemetry.connectionOpened()
    telemetry.connectionOpened()
    telemetry.upgradeOpened()
    telemetry.connectionClosed()
    const found = await scrape(metrics)
    expect(found.value('sluice_connections')).toBe(1)
    expect(found.value('sluice_upgrades')).toBe(1)
  })

  test('a table is read when it is asked about', async () => {
    const metrics = metricsFor([])
    let size = 0
    metrics.telemetry.observeTable('blocked', () => ({ size, capacity: 100, evictions: 7 }))
    size = 42
    const found = await scrape(metrics)
    expect(found.value('sluice_table_entries', { table: 'blocked' })).toBe(42)
    expect(found.value('sluice_table_capacity', { table: 'blocked' })).toBe(100)
    expect(found.value('sluice_table_evictions_total', { table: 'blocked' })).toBe(7)
  })

  test('the state of the backend is that of the last forwarded request', () => {
    const metrics = metricsFor([])
    expect(metrics.upstreamState()).toBe('unknown')
    metrics.telemetry.upstreamFailed('refused')
    expect(metrics.upstreamState()).toBe('unavailable')
    metrics.telemetry.upstreamAnswered(3)
    expect(metrics.upstreamState()).toBe('available')
  })
})

describe('the exposition', () => {
  test('every name begins with sluice_, and Node’s metrics exist without it too', async () => {
    const found = await scrape(metricsFor([login]))
    const names = [...found.types.keys()]
    const ofNode = names.filter((name) => /^sluice_(process|nodejs)_/.test(name))
    expect(ofNode.length).toBeGreaterThan(20)
    expect(names.filter((name) => !name.startsWith('sluice_')).sort()).toEqual(
      ofNode.map((name) => name.slice('sluice_'.length)).sort(),
    )
    expect(found.value('process_start_time_seconds')).toBe(found.value('sluice_process_start_time_seconds'))
    const buckets = found.samples.filter(({ name }) => name === 'nodejs_gc_duration_seconds_bucket')
    expect(found.samples.filter(({ name }) => name === 'sluice_nodejs_gc_duration_seconds_bucket')).toEqual(
      buckets.map((bucket) => ({ ...bucket, name: `sluice_${bucket.name}` })),
    )
    expect(found.value('sluice_process_resident_memory_bytes')).toBeGreaterThan(1_000_000)
    expect(found.value('sluice_process_start_time_seconds')).toBeGreaterThan(1_700_000_000)
    expect(found.value('sluice_build_info', { version: '1.2.3' })).toBe(1)
    expect(found.value('sluice_processes')).toBe(1)
  })

  // Sums would hide workers with almost as many files as they may open behind a primary process with few.
  test.runIf(process.platform === 'linux')(
    'open files and their limit are those of the process with the most',
    async () => {
      const ofProcess = (openFiles: number): MetricSnapshot =>
        snapshot.map((metric) =>
          metric.name.endsWith('process_open_fds')
            ? { ...metric, values: [{ labels: {}, value: openFiles }] }
            : metric,
        )
      const snapshot = await metricsFor([]).takeSnapshot()
      const alone = parseExposition(await renderMetrics([snapshot]))
      const found = parseExposition(await renderMetrics([ofProcess(30), ofProcess(950), ofProcess(900)]))
      for (const prefix of ['', 'sluice_']) {
        expect(found.value(`${prefix}process_open_fds`)).toBe(950)
        expect(found.value(`${prefix}process_max_fds`)).toBe(alone.value(`${prefix}process_max_fds`))
      }
      expect(found.value('sluice_processes')).toBe(3)
    },
  )

  test('quantiles of the lag of the event loop are those of the process that is held up most', async () => {
    const snapshot = await metricsFor([]).takeSnapshot()
    const ofProcess = (lag: number): MetricSnapshot =>
      snapshot.map((metric) =>
        /eventloop_lag_p\d+_seconds$/.test(metric.name)
          ? { ...metric, values: [{ labels: {}, value: lag }] }
          : metric,
      )
    const found = parseExposition(await renderMetrics([ofProcess(0.011), ofProcess(0.25), ofProcess(0.012)]))
    for (const quantile of ['p50', 'p90', 'p99'])
      for (const prefix of ['', 'sluice_'])
        expect(found.value(`${prefix}nodejs_eventloop_lag_${quantile}_seconds`)).toBe(0.25)
  })

  test('each policy is listed from the start with each outcome at 0', async () => {
    const found = await scrape(metricsFor([login, share]))
    const decisions = found.samples.filter((sample) => sample.name === 'sluice_decisions_total')
    expect(decisions).toHaveLength(2 * 7)
    expect(decisions.every((sample) => sample.value === 0)).toBe(true)
  })

  describe('with more than 250 policies', () => {
    const policies = Array.from({ length: 252 }, (_, index): Policy => ({
      ...policyNamed(`rule-${index}`),
      partition: [{ kind: 'body', name: 'email', path: ['email'] }],
      over: { delayMs: 1000, waiting: 10 },
      ban: { after: 2, forMs: 1000, maxMs: 1000, scope: 'rule' },
      cost: { reserve: { paths: [['n']] }, settle: { kind: 'json', path: ['n'] } },
      device: { cookie: 'device', forMs: 1000, status: [] },
      lease: 'auto',
    }))
    const last = policyNamed('rule-251')
    const namesIn = (found: Exposition, metric: string): number =>
      new Set(
        found.samples.filter(({ name }) => name.startsWith(metric)).map(({ labels }) => labels['policy']),
      ).size

    test.each([
      'sluice_decisions_total',
      'sluice_limited_requests_total',
      'sluice_delay_seconds',
      'sluice_bans_total',
      'sluice_unread_keys_total',
      'sluice_unreadable_costs_total',
      'sluice_unread_reserves_total',
      'sluice_devices_total',
      'sluice_leased_units_total',
    ])('%s lists the first 250 policies at 0, and other policies when they are counted', async (metric) => {
      const metrics = metricsFor(policies)
      expect(namesIn(await scrape(metrics), metric)).toBe(250)
      const { telemetry } = metrics
      telemetry.decided(last, 'refused')
      telemetry.delayed(last, 5)
      telemetry.clientBanned(last)
      telemetry.keyUnread(last, 'missing')
      telemetry.costUnread(last, 'missing')
      telemetry.reserveUnread(last, 'missing')
      telemetry.deviceIssued(last)
      telemetry.leaseChanged(last, 'taken', 3)
      const found = await scrape(metrics)
      expect(namesIn(found, metric)).toBe(251)
      const ofLast = found.samples.filter(({ labels }) => labels['policy'] === 'rule-251')
      expect(ofLast.filter(({ name, value }) => value === 0 && !name.endsWith('_bucket'))).toEqual([])
    })
  })

  test('a policy name with quotes, backslashes and line ends is escaped', async () => {
    const name = 'a"b\\c\nd'
    const metrics = metricsFor([policyNamed(name)])
    metrics.telemetry.decided(policyNamed(name), 'allowed')
    const found = await scrape(metrics)
    expect(found.value('sluice_decisions_total', { policy: name, outcome: 'allowed' })).toBe(1)
  })
})

test('a process with several gateways is watched once', async () => {
  const monitor = vi.spyOn(perfHooks, 'monitorEventLoopDelay')
  const readOther = watchProcess('other_')
  expect(monitor).not.toHaveBeenCalled()
  monitor.mockRestore()
  const names = (await readOther()).map(({ name }) => name)
  expect(names).toContain('other_process_cpu_seconds_total')
  expect(names).toContain('process_cpu_seconds_total')
  expect(names.filter((name) => name.startsWith('sluice_'))).toEqual([])
})
