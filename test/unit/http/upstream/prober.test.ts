import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Prober, type ProberOptions } from '../../../../proxy/http/upstream/servers/prober.ts'
import type { Probe } from '../../../../proxy/http/upstream/servers/probe.ts'
import { Server } from '../../../../proxy/http/upstream/servers/server.ts'

const unopened = (): never => {
  throw new Error('no connection is needed')
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function createServer(name = 'a'): Server {
  return new Server({ url: new URL(`http://${name}`), address: undefined }, unopened)
}

function createProber(probe: Probe, options: Partial<ProberOptions> = {}): Prober {
  const usual = { everyMs: 1_000, fails: 3, passes: 2, onProbed: () => undefined, random: () => 0.5 }
  return new Prober({ probe, now: () => performance.now(), ...usual, ...options })
}

test('consecutive failures make a server unhealthy, and consecutive passes make it healthy again', async () => {
  let problem: string | undefined = 'broken'
  const told: boolean[] = []
  const server = createServer()
  const prober = createProber(() => Promise.resolve(problem), { onProbed: (passed) => told.push(passed) })
  prober.use([server])
  await vi.advanceTimersByTimeAsync(2_499)
  expect([told.length, server.state]).toEqual([2, 'available'])
  await vi.advanceTimersByTimeAsync(1)
  expect(server.state).toBe('unhealthy')
  problem = undefined
  await vi.advanceTimersByTimeAsync(1_000)
  problem = 'broken'
  await vi.advanceTimersByTimeAsync(1_000)
  problem = undefined
  await vi.advanceTimersByTimeAsync(1_000)
  expect(server.state).toBe('unhealthy')
  await vi.advanceTimersByTimeAsync(1_000)
  expect(server.state).toBe('available')
  expect(told).toEqual([false, false, false, true, false, true, true])
  prober.stop()
})

test('a probe that gets no answer is given up, and there is never a second one beside it', async () => {
  let running = 0
  let begun = 0
  let most = 0
  const server = createServer()
  const prober = createProber(
    (_, signal) =>
      new Promise((resolve) => {
        begun++
        most = Math.max(most, ++running)
        signal.addEventListener('abort', () => {
          running--
          resolve('late')
        })
      }),
  )
  prober.use([server])
  await vi.advanceTimersByTimeAsync(10_000)
  expect([most, server.state]).toEqual([1, 'unhealthy'])
  expect(begun).toBeGreaterThan(8)
  prober.stop()
  expect(running).toBe(0)
  await vi.advanceTimersByTimeAsync(10_000)
  expect([running, vi.getTimerCount()]).toEqual([0, 0])
})

test('the first probes are spread over the interval', async () => {
  const begun: string[] = []
  const random = [0.1, 0.9, 0.5].values()
  const prober = createProber(
    ({ url }) => {
      begun.push(url.hostname)
      return Promise.resolve(undefined)
    },
    { random: () => random.next().value ?? 0.5 },
  )
  prober.use(['a', 'b', 'c'].map(createServer))
  await vi.advanceTimersByTimeAsync(400)
  expect(begun).toEqual(['a'])
  await vi.advanceTimersByTimeAsync(500)
  expect(begun).toEqual(['a', 'c', 'b'])
  prober.stop()
})

test('servers that are gone are not probed any more, and those that stay go on as they were', async () => {
  const begun: string[] = []
  const prober = createProber(({ url }) => {
    begun.push(url.hostname)
    return Promise.resolve('broken')
  })
  const [a, b] = [createServer('a'), createServer('b')]
  prober.use([a, b])
  await vi.advanceTimersByTimeAsync(1_600)
  prober.use([a])
  await vi.advanceTimersByTimeAsync(1_000)
  expect([a.state, b.state]).toEqual(['unhealthy', 'available'])
  expect(begun).toEqual(['a', 'b', 'a', 'b', 'a'])
  prober.stop()
})
