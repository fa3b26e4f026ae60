import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  UnansweredConnections,
  type Unanswered,
} from '../../../../proxy/http/upstream/keep-alive/unanswered.ts'
import { seededRandom } from '../../../support/random/seeded-random.ts'
import { runs } from '../../../support/random/runs.ts'

// Simulated backends on a simulated clock: which connections are closed to make room for others, and what that costs or saves.

type Load = {
  /** The number of connections that the backend serves at a time. */
  readonly workers: number
  /** The number of clients. Each sends its next request when the previous one has been answered. */
  readonly clients: number
  /** Requests of each client. */
  readonly rounds: number
  /** Maps a random number in [0, 1) to the milliseconds that a response takes. */
  readonly takes: (random: number) => number
  readonly seed: number
}
/** A load that is not finished by then never finishes. */
const MAX_MS = 10_000_000

type Outcome = { readonly opened: number; readonly answered: number; readonly endMs: number }
type Connection = { unanswered: Unanswered | undefined }

/** @param keepsAlive if false, each connection is closed after its response, as nginx does without `keepalive` */
function simulate({ workers, clients, rounds, takes, seed }: Load, keepsAlive: boolean): Outcome {
  const random = seededRandom(seed)
  const unanswered = new UnansweredConnections()
  const events: { readonly atMs: number; readonly run: () => void }[] = []
  const idle: Connection[] = []
  const backlog: Connection[] = []
  let nowMs = 0
  let opened = 0
  let accepted = 0
  let free = workers
  let left = clients * rounds
  let answered = 0

  const at = (atMs: number, run: () => void): void => {
    const later = events.findIndex((event) => event.atMs > atMs)
    events.splice(later === -1 ? events.length : later, 0, { atMs, run })
  }
  const serve = (connection: Connection): void => at(nowMs + takes(random()), () => answer(connection))
  const acceptNext = (): void => {
    const next = free > 0 ? backlog.shift() : undefined
    if (!next) return
    free--
    serve(next)
  }
  const request = (): void => {
    if (left-- <= 0) return
    const reused = idle.pop()
    if (reused) return serve(reused)
    opened++
    backlog.push({ unanswered: unanswered.add(nowMs) })
    acceptNext()
  }
  const close = (): void => {
    accepted--
    free++
    acceptNext()
  }
  const answer = (connection: Connection): void => {
    const { unanswered: fresh } = connection
    answered++
    if (fresh) {
      unanswered.recordResponseTime(nowMs - fresh.sinceMs, fresh)
      unanswered.recordAccepted(fresh, ++accepted)
      connection.unanswered = undefined
      if (idle.length > 0) unanswered.recordFreeConnection(nowMs)
    }
    if (unanswered.size > 0) unanswered.recordFreeConnection(nowMs)
    if (!keepsAlive || (unanswered.size > 0 && unanswered.claimClose(nowMs, accepted))) close()
    else idle.push(connection)
    at(nowMs, request)
  }
  const check = (): void => {
    while (idle.length > 0 && unanswered.size > 0 && unanswered.claimClose(nowMs, accepted)) {
      idle.shift()
      close()
    }
    if (answered < clients * rounds && nowMs < MAX_MS) at(nowMs + 10, check)
  }
  for (let i = 0; i < clients; i++) at(0, request)
  at(10, check)
  for (let event = events.shift(); event; event = events.shift()) {
    nowMs = event.atMs
    event.run()
  }
  return { opened, answered, endMs: nowMs }
}

const times: Readonly<Record<string, (random: number) => number>> = {
  'always the same': () => 200,
  'about the same': (random) => 100 + 50 * random,
  quick: (random) => 2 + 3 * random,
  exponential: (random) => -80 * Math.log(1 - random),
  'mostly quick, sometimes slow': (random) => (random < 0.1 ? 800 : 10),
  slow: (random) => 1500 + 1000 * random,
}
const drawn = {
  workers: fc.integer({ min: 1, max: 24 }),
  clients: fc.integer({ min: 2, max: 80 }),
  rounds: fc.integer({ min: 1, max: 60 }),
  seed: fc.integer({ min: 1, max: 1e6 }),
}

describe.each(Object.entries(times))('%s', (_, takes) => {
  test('a prefork backend answers as soon as without keep-alive', () => {
    fc.assert(
      fc.property(fc.record(drawn), (load) => {
        const { endMs, answered } = simulate({ ...load, takes }, true)
        expect(answered).toBe(load.clients * load.rounds)
        // Usually the times are equal. Before anything is known about the backend, a connection is closed after 62.5 ms, at the next check.
        const firstMs = 1.25 * 50 + 10
        expect(endMs).toBeLessThanOrEqual(1.5 * simulate({ ...load, takes }, false).endMs + firstMs)
      }),
      { numRuns: runs(300) },
    )
  })

  test('a backend that accepts all connections keeps most of them', () => {
    fc.assert(
      fc.property(fc.record(drawn), (load) => {
        const { opened } = simulate({ ...load, takes, workers: Number.POSITIVE_INFINITY }, true)
        // The connections closed in the learning phase are few, and further requests do not add to them.
        expect(opened / load.clients).toBeLessThanOrEqual(8)
      }),
      // Of some thousand loads, the one that lost the most connections when one was closed sooner than a response usually comes.
      { numRuns: runs(300), examples: [[{ workers: 1, clients: 50, rounds: 60, seed: 417_481 }]] },
    )
  })
})
