import { expect, test } from 'vitest'
import { createLeaving } from '../../../../../proxy/limits/store/redis/connecting/leaving.ts'

test('replicas are left ever more slowly one after another, and the delay is reset when none came for long', () => {
  let nowMs = 0
  const leaving = createLeaving(() => nowMs)
  expect([leaving.isRecent(), leaving.delayMs()]).toEqual([false, 0])
  const delays = []
  for (let connections = 0; connections < 8; connections++) {
    leaving.connected()
    leaving.left()
    delays.push(leaving.delayMs())
    nowMs += leaving.delayMs()
  }
  expect(delays).toEqual([50, 100, 200, 400, 800, 800, 800, 800])
  nowMs += 10_000
  expect([leaving.isRecent(), leaving.delayMs()]).toEqual([false, 0])
  leaving.connected()
  leaving.left()
  expect([leaving.isRecent(), leaving.delayMs()]).toEqual([true, 50])
})

test('a connection counts once, however many of its replies tell that it leads to a replica', () => {
  const leaving = createLeaving(() => 0)
  for (let replies = 0; replies < 5; replies++) leaving.left()
  expect(leaving.delayMs()).toBe(50)
})
