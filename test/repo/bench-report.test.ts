import { expect, test } from 'vitest'
import { layerOf, nearestFunction, readStacks, sharesBy } from '../../bench/measure/perf-samples.ts'
import { renderBounds } from '../../bench/report/report.ts'
import { median, medianRatio, percentile, type Results, type Sample } from '../../bench/report/results.ts'

function sample(cpuUs: number): Sample {
  return { cpuUs, userUs: cpuUs, systemUs: 0, redisUs: 0, requestsPerSecond: 1 }
}

function resultsOf(cpu: Results['cpu']): Results {
  return {
    machine: {
      date: '',
      processor: '',
      cores: 1,
      memoryGib: 1,
      kernel: '',
      load: { before: 0, after: 0 },
      versions: {},
    },
    options: { rounds: 1, seconds: 1, warmupRequests: 1, connections: 1, idleConnections: 1 },
    missing: [],
    cpu,
    latency: [],
    latencyRate: 0,
    memory: [],
  }
}

test('a median is the middle, or between the two in the middle', () => {
  expect(median([9, 1, 5])).toBe(5)
  expect(median([4, 1, 2, 9])).toBe(3)
  expect(median([])).toBeNaN()
})

test('ratios compare measurements of the same round, so a slow machine in one round does not change them', () => {
  const ours = [10, 40, 11].map(sample)
  const theirs = [20, 80, 22].map(sample)
  expect(medianRatio(ours, theirs, ({ cpuUs }) => cpuUs)).toBe(0.5)
  expect(medianRatio(ours, [], ({ cpuUs }) => cpuUs)).toBeNaN()
})

test('percentiles are by the nearest rank', () => {
  const sorted = Float64Array.from({ length: 1000 }, (_, i) => i + 1)
  expect(percentile(sorted, 0.5)).toBe(500)
  expect(percentile(sorted, 0.99)).toBe(990)
  expect(percentile(sorted, 0.999)).toBe(999)
  expect(percentile(Float64Array.of(7), 0.999)).toBe(7)
})

test('a bound is met, missed, or not measured', () => {
  const line = (subject: string, cpuUs: number): Results['cpu'][number] => {
    return { scenario: 'pass', subject, samples: [sample(cpuUs)] }
  }
  const text = renderBounds(resultsOf([line('sluice', 40), line('http-proxy', 100), line('nginx', 10)]))
  expect(text).toMatch(/`http-proxy` +\| +0\.4 \| +0\.40 \| +met \|/)
  expect(text).toMatch(/`pass`, CPU: of nginx +\| +2\.5 \| +4\.00 \| +missed \|/)
  expect(text).toMatch(/HAProxy +\| +2\.5 \| +\| not measured \|/)
})

test('samples of perf are counted under the nearest JavaScript function', () => {
  const stacks = readStacks(`node-MainThread
\tffffffff81 tcp_sendmsg ([kernel.kallsyms])
\t       1a2b node::StreamBase::Write(v8::FunctionCallbackInfo const&) (/usr/bin/node)
\t       7f01 JS:*'write node:net:1293:42 (/tmp/perf-1.map)
\t       7f02 JS:*'start file://${new URL('../../proxy/http/forward/forward.ts', import.meta.url).pathname}:128:8 (/tmp/perf-1.map)

node-V8Worker
\t       1a2c v8::internal::Scavenger::Process(v8::JobDelegate*) (/usr/bin/node)
\t       1a2d start_thread (/usr/lib/libc.so.6)

node-MainThread
\t       7f02 JS:*'start file://${new URL('../../proxy/http/forward/forward.ts', import.meta.url).pathname}:128:8 (/tmp/perf-1.map)
`)
  expect(stacks.map(layerOf)).toEqual(['kernel', 'other threads: garbage collection', 'JavaScript'])
  expect(stacks.map(nearestFunction)).toEqual([
    'node:net:1293 write',
    '(other threads)',
    'proxy/http/forward/forward.ts:128 start',
  ])
  expect(sharesBy(stacks.slice(0, 1), layerOf)).toEqual([{ name: 'kernel', share: 1, kernelShare: 1 }])
})
