import { expect, test } from 'vitest'
import { runNode } from '../support/gateway/process.ts'

test('a million embedded counters take at most 200 bytes of resident memory each, and more clients take none', async () => {
  const { status, stdout, stderr } = await runNode('test/support/limiter/counter-memory.ts')
  expect(stderr).toBe('')
  expect(status).toBe(0)
  const measured = JSON.parse(stdout) as Record<string, unknown>
  expect(measured).toMatchObject({
    atFilled: { size: 1_000_000, capacity: 1_000_000, evictions: 1 },
    atFlooded: { size: 1_000_000, capacity: 1_000_000, evictions: 300_001 },
  })
  expect(measured['bytesPerCounter']).toBeLessThan(200)
  expect(measured['moreBytesAfter']).toBeLessThan(8_000_000)
})

test('clients of a sliding window take no more, each with its share of times', async () => {
  // So many clients that a few megabytes of other memory do not matter.
  const args = ['sliding', '12', '300000']
  const { status, stdout, stderr } = await runNode('test/support/limiter/counter-memory.ts', {}, args)
  expect(stderr).toBe('')
  expect(status).toBe(0)
  const measured = JSON.parse(stdout) as Record<string, unknown>
  expect(measured).toMatchObject({
    atFilled: { clients: { size: 300_000, evictions: 1 }, times: { size: 3_600_000, capacity: 3_600_000 } },
    atFlooded: { clients: { size: 300_000, evictions: 90_001 }, times: { size: 3_600_000 } },
  })
  expect(measured['bytesPerCounter']).toBeLessThan(200)
  expect(measured['moreBytesAfter']).toBeLessThan(8_000_000)
})

test('a flood of new clients does not slow the others down', async () => {
  const { status, stdout } = await runNode('test/support/limiter/counter-times.ts')
  expect(status).toBe(0)
  const measured = JSON.parse(stdout) as Record<'p99Us' | 'p99FloodedUs' | 'evictions', number>
  expect(measured.evictions).toBeGreaterThanOrEqual(300_000)
  expect(measured.p99FloodedUs).toBeLessThan(2 * measured.p99Us)
})

test('a ban, an override and the count of a client’s requests in flight take less than 300 bytes each', async () => {
  const { status, stdout, stderr } = await runNode('test/support/limiter/client-memory.ts')
  expect(stderr).toBe('')
  expect(status).toBe(0)
  const bytes = JSON.parse(stdout) as Record<'ban' | 'banEverywhere' | 'override' | 'requestInFlight', number>
  expect(Object.keys(bytes)).toHaveLength(4)
  for (const each of Object.values(bytes)) expect(each).toBeLessThan(300)
})
