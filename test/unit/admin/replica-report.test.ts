import { expect, test } from 'vitest'
import { readReport, writeReport, type ReplicaReport } from '../../../proxy/admin/replicas/report.ts'
import { chooseReported } from '../../../proxy/admin/replicas/reported-clients.ts'
import { sumThrottled, type ThrottledClient } from '../../../proxy/limits/clients/throttled-clients.ts'

function client(policy: string, partitionKey: string, rest: Partial<ThrottledClient> = {}): ThrottledClient {
  return { policy, partitionKey, refusals: 1, resetMs: 1_000, isShadow: false, ...rest }
}

const flood = (policy: string, count: number): ThrottledClient[] =>
  Array.from({ length: count }, (_, index) => client(policy, `10.0.${index >> 8}.${index & 255}`))

const about = { gateway: 'g', host: 'h', version: '1', tableHash: 't', status: 'ready' } as const

function pass(limited: readonly ThrottledClient[]): ReplicaReport | undefined {
  return readReport(writeReport({ ...about, limited }), 0)
}

test('readReport returns the report that was written', () => {
  const limited = [
    client('login', '192.0.2.1', { refusals: 7, label: 'Acme "1"' }),
    client('trial', 'h:abc', { isShadow: true }),
  ]
  expect(pass(limited)).toEqual({ ...about, limited })
  expect(pass([])).toEqual({ ...about, limited: [] })
})

test('the flood under one rule leaves room for others', () => {
  const chosen = chooseReported([...flood('api', 900), ...flood('login', 50)])
  expect(chosen.filter(({ policy }) => policy === 'api')).toHaveLength(120)
  expect(chosen.filter(({ policy }) => policy === 'login')).toHaveLength(20)
  const rules = Array.from({ length: 500 }, (_, index) => client(`rule-${index}`, '192.0.2.1'))
  expect(chooseReported(rules)).toHaveLength(200)
})

test('a report has at most 24 KiB', () => {
  const limited = flood('a'.repeat(100), 100).map((one) => ({ ...one, label: 'x'.repeat(200) }))
  const text = writeReport({ ...about, limited })
  expect(text.length).toBeLessThan(24 * 1024)
  expect(readReport(text, 0)?.limited.length).toBeGreaterThan(50)
})

test('the lists of several processes are merged, refusals before requests that a shadow let pass', () => {
  const sum = sumThrottled(
    [
      client('api', 'a', { refusals: 2, resetMs: 500 }),
      client('trial', 'a', { refusals: 90, isShadow: true }),
      client('api', 'b', { refusals: 4, label: 'B' }),
      client('api', 'a', { refusals: 3, resetMs: 900 }),
      client('api', 'b', { refusals: 0 }),
    ],
    10,
  )
  expect(sum).toEqual([
    client('api', 'a', { refusals: 5, resetMs: 900 }),
    client('api', 'b', { refusals: 4, label: 'B' }),
    client('trial', 'a', { refusals: 90, isShadow: true }),
  ])
  expect(sumThrottled(sum, 1)).toHaveLength(1)
})
