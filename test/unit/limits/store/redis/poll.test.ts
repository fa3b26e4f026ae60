import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createPoll } from '../../../../../proxy/limits/store/redis/feeds/poll.ts'
import { recordLog } from '../../../../support/limiter/recordings.ts'

// The test advances the date and the timers.
beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** The promise for bans and resets: each replica learns of them within a second. */
const promisedMs = 1_000

function start(look: () => Promise<void>, isAnswering = () => true) {
  const { log, lines } = recordLog()
  return { lines, poll: createPoll({ look, isAnswering, key: 'k', failed: 'cannot read', log }) }
}

test('a change is read within a quarter of the time in which each replica is to know of it', async () => {
  const lookedAtMs: number[] = []
  const { poll } = start(() => Promise.resolve(void lookedAtMs.push(Date.now())))
  const beganAtMs = Date.now()
  await vi.advanceTimersByTimeAsync(10 * promisedMs)
  poll.close()
  await vi.advanceTimersByTimeAsync(promisedMs)
  const pauses = [beganAtMs, ...lookedAtMs].map((atMs, i, all) => (all[i + 1] ?? atMs) - atMs)
  expect(Math.max(...pauses)).toBeLessThanOrEqual(promisedMs / 4)
  expect(lookedAtMs).toHaveLength(40)
})

test('a slow poll is never run twice at once, and the next one follows immediately', async () => {
  let open = 0
  let most = 0
  const { poll } = start(async () => {
    most = Math.max(most, ++open)
    await new Promise((resolve) => setTimeout(resolve, 700))
    open -= 1
  })
  await vi.advanceTimersByTimeAsync(10_000)
  expect(most).toBe(1)
  expect(open).toBe(1)
  poll.close()
})

test('the poll pauses while Redis does not answer, survives a failure, and logs it once', async () => {
  let looks = 0
  let isAnswering = false
  const reply = Object.assign(new Error('NOPERM'), { name: 'ReplyError' })
  const { poll, lines } = start(
    () => {
      looks += 1
      return Promise.reject(reply)
    },
    () => isAnswering,
  )
  await vi.advanceTimersByTimeAsync(1_000)
  expect(looks).toBe(0)
  isAnswering = true
  await vi.advanceTimersByTimeAsync(1_000)
  expect(looks).toBe(4)
  expect(lines.map(({ msg, reason }) => [msg, reason])).toEqual([['cannot read', 'NOPERM']])
  poll.close()
})
