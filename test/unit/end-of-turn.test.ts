import { beforeEach, expect, test } from 'vitest'
import { flushAtEndOfTurn, joinAtEndOfTurn, readAtEndOfTurn } from '../../proxy/http/message/end-of-turn.ts'
import { nextUncaughtException } from '../support/run/uncaught-exception.ts'

const endOfTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

// The whole process has one queue: entries left by another file would count among the sixteen.
beforeEach(endOfTurn)

/** Connections that record the calls. */
function noting() {
  const done: string[] = []
  const reader = (name: string, then?: () => void) => ({
    readBuffered() {
      done.push(name)
      then?.()
    },
  })
  const flushable = (name: string, then?: () => void) => ({
    flush() {
      done.push(name)
      then?.()
    },
  })
  return { done, reader, flushable }
}

test('connections are all read, then flushed, and those that joined at the end of the turn come last', async () => {
  const { done, reader, flushable } = noting()
  joinAtEndOfTurn(flushable('joined'))
  flushAtEndOfTurn(flushable('written'))
  readAtEndOfTurn(reader('first', () => flushAtEndOfTurn(flushable('written by the first'))))
  readAtEndOfTurn(reader('second', () => joinAtEndOfTurn(flushable('joined by the second'))))
  expect(done).toEqual([])
  await endOfTurn()
  expect(done).toEqual([
    ...['first', 'second'],
    ...['written', 'written by the first'],
    ...['joined', 'joined by the second'],
  ])
})

test('the sixteenth connection causes all sixteen to be read and written at once', async () => {
  const { done, reader, flushable } = noting()
  for (let i = 1; i <= 17; i++)
    readAtEndOfTurn(reader(`read ${i}`, () => flushAtEndOfTurn(flushable(`written ${i}`))))
  const sixteen = Array.from({ length: 16 }, (_, i) => i + 1)
  expect(done).toEqual([...sixteen.map((i) => `read ${i}`), ...sixteen.map((i) => `written ${i}`)])
  await endOfTurn()
  expect(done.slice(32)).toEqual(['read 17', 'written 17'])
})

test('an exception of one connection is uncaught and does not block the others', async () => {
  const { done, reader, flushable } = noting()
  const uncaught = nextUncaughtException()
  const fail = (): never => {
    throw new Error('a bug')
  }
  readAtEndOfTurn(reader('failing', fail))
  readAtEndOfTurn(reader('other'))
  flushAtEndOfTurn(flushable('written'))
  joinAtEndOfTurn(flushable('joined'))
  expect(await uncaught).toEqual(new Error('a bug'))
  // A pool of an earlier test in this process may have read and written earlier, by its timer, and does not join.
  await endOfTurn()
  expect(done).toEqual(['failing', 'other', 'written', 'joined'])
})
