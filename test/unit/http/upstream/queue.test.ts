import { expect, test } from 'vitest'
import type { UpstreamExchange } from '../../../../proxy/http/upstream/exchange.ts'
import { UpstreamFailure } from '../../../../proxy/http/upstream/failure.ts'
import { ExchangeQueue } from '../../../../proxy/http/upstream/waiting/queue.ts'

type Named = UpstreamExchange & { readonly name: string; isCancelled: boolean }

function exchange(client: string, name: string): Named {
  return { client, name, isCancelled: false } as Named
}

const endOfTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const anyone = (): boolean => true

function takeAll(queue: ExchangeQueue, mayHave: (client: string) => boolean = anyone): string[] {
  const taken: string[] = []
  for (let next = queue.take(mayHave); next; next = queue.take(mayHave)) taken.push((next as Named).name)
  return taken
}

test('clients take turns, and each is served in order', () => {
  const queue = new ExchangeQueue(10, 1_000)
  for (const name of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2'])
    expect(queue.add(exchange(name.charAt(0), name), 0)).toBeUndefined()
  expect(queue.size).toBe(6)
  expect(takeAll(queue)).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
  expect(queue.size).toBe(0)
})

test('a client that may not have a connection keeps its turn', () => {
  const queue = new ExchangeQueue(10, 1_000)
  for (const name of ['a1', 'b1', 'b2']) queue.add(exchange(name.charAt(0), name), 0)
  expect(takeAll(queue, (client) => client !== 'a')).toEqual(['b1', 'b2'])
  expect(takeAll(queue)).toEqual(['a1'])
})

test('a full queue makes room for a client that has less in it', () => {
  const queue = new ExchangeQueue(3, 1_000)
  const waiting = ['a1', 'a2', 'a3'].map((name) => exchange('a', name))
  for (const one of waiting) queue.add(one, 0)
  const fourth = exchange('a', 'a4')
  expect(queue.add(fourth, 0)).toBe(fourth)
  expect(queue.add(exchange('b', 'b1'), 0)).toBe(waiting[2])
  // With another request for b, it would have as many as a has after losing one, so nothing is evicted.
  const second = exchange('b', 'b2')
  expect(queue.add(second, 0)).toBe(second)
  expect(takeAll(queue)).toEqual(['a1', 'b1', 'a2'])
})

test('requests whose client has disconnected are skipped and make room', () => {
  const queue = new ExchangeQueue(2, 1_000)
  const gone = exchange('a', 'a1')
  queue.add(gone, 0)
  queue.add(exchange('a', 'a2'), 0)
  gone.isCancelled = true
  expect(queue.add(exchange('a', 'a3'), 0)).toBeUndefined()
  expect(takeAll(queue)).toEqual(['a2', 'a3'])
})

const tooLate = new UpstreamFailure('busy', 'too late')

function failing(name: string, failed: string[]): Named {
  return { ...exchange('a', name), onFailure: () => void failed.push(name) }
}

test('requests that have waited too long fail', () => {
  const queue = new ExchangeQueue(10, 1_000)
  const failed: string[] = []
  const gone = failing('gone', failed)
  queue.add(failing('first', failed), 0)
  queue.add(gone, 0)
  queue.add(failing('second', failed), 500)
  gone.isCancelled = true
  queue.failOverdue(999, () => tooLate)
  expect(failed).toEqual([])
  queue.failOverdue(1_000, () => tooLate)
  expect(failed).toEqual(['first'])
  expect(queue.size).toBe(1)
})

// Answering a request takes time, and others are served in between.
test('overdue requests fail a few in each turn of the event loop', async () => {
  const queue = new ExchangeQueue(100, 1_000)
  const failed: string[] = []
  for (let i = 0; i < 30; i++) queue.add(failing(String(i), failed), 0)
  queue.failOverdue(1_000, () => tooLate)
  const counts = [failed.length]
  for (let turn = 1; turn < 4; turn++) {
    await endOfTurn()
    counts.push(failed.length)
  }
  expect(counts).toEqual([8, 16, 24, 30])
})

test('a request whose failure handler throws leaves the others to the next sweep', () => {
  const queue = new ExchangeQueue(100, 1_000)
  const failed: string[] = []
  const throwing = {
    ...exchange('a', 'throwing'),
    onFailure() {
      throw new Error('a bug')
    },
  }
  for (const one of [failing('first', failed), throwing, failing('second', failed)]) queue.add(one, 0)
  expect(() => queue.failOverdue(1_000, () => tooLate)).toThrow('a bug')
  queue.failOverdue(1_000, () => tooLate)
  expect(failed).toEqual(['first', 'second'])
  expect(queue.size).toBe(0)
})

test('sweeps in quick succession do not fail more requests in a turn', async () => {
  const queue = new ExchangeQueue(100, 1_000)
  const failed: string[] = []
  for (let i = 0; i < 30; i++) queue.add(failing(String(i), failed), 0)
  queue.failOverdue(1_000, () => tooLate)
  queue.failOverdue(1_000, () => tooLate)
  await endOfTurn()
  queue.failOverdue(1_000, () => tooLate)
  expect(failed).toHaveLength(16)
})
