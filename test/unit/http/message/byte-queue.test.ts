import { expect, test } from 'vitest'
import { ByteQueue } from '../../../../proxy/http/message/byte-queue.ts'
import { collectGarbage } from '../../../../shared/v8-gc.ts'

function usedHeap(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

test('a queue that is never empty does not grow with the bytes that pass through it', () => {
  const queue = new ByteQueue()
  const piece = Buffer.alloc(4_096)
  const before = usedHeap()
  queue.push(piece)
  for (let i = 0; i < 1_000_000; i++) {
    queue.push(piece)
    queue.shift()
  }
  expect(queue.bytes).toBe(piece.length)
  expect(usedHeap() - before).toBeLessThan(1024 * 1024)
})
