import type { Socket } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { UpstreamChannel, UpstreamExchange } from '../../../../proxy/http/upstream/exchange.ts'
import { connectionOpener } from '../../../../proxy/http/upstream/open-connection.ts'
import { UpstreamPool } from '../../../../proxy/http/upstream/pool.ts'
import { startRawBackend } from '../../../support/http/backend.ts'
import { runs } from '../../../support/random/runs.ts'
import { eventually } from '../../../support/wait/eventually.ts'
import { upstreamRequest } from '../../../support/http/upstream-request.ts'

const nothing = (): void => undefined

function post(pool: UpstreamPool): Promise<string> {
  return new Promise((resolve) => {
    let body = ''
    const exchange: UpstreamExchange = {
      ...{
        method: 'POST',
        client: 'c',
        isCancelled: false,
        headBytes: 0,
        isBodyPending: false,
        isRetryable: false,
        upgrades: false,
      },
      start(connection: UpstreamChannel) {
        connection.writeHead(upstreamRequest({ method: 'POST', contentLength: 0 }))
      },
      onInterimResponse: nothing,
      onHead: nothing,
      onBody: (chunk) => (body += chunk.toString()),
      onReadEnd: nothing,
      onTrailers: nothing,
      onEnd: () => resolve(body),
      onUpgrade: nothing,
      onFailure: ({ kind }) => resolve(kind),
    }
    pool.send(exchange)
  })
}

// The backend closes idle connections after a time that it does not announce. A request that arrives at that moment is lost, and only some
// requests may be sent again.
test('no connection is used that is about as old as the ones that the backend has closed', async () => {
  const drawn = fc.record({
    keepAliveMs: fc.integer({ min: 50, max: 2_500 }),
    observed: fc.double({ min: 1, max: 1.2, noNaN: true }),
    gaps: fc.array(fc.double({ min: 0, max: 1.2, noNaN: true }), { minLength: 5, maxLength: 20 }),
  })
  await fc.assert(
    fc.asyncProperty(drawn, async ({ keepAliveMs, observed, gaps }) => {
      let nowMs = 1_000
      const idleSince = new Map<Socket, number>()
      const backend = await startRawBackend((socket) => {
        idleSince.set(socket, nowMs)
        socket.on('close', () => idleSince.delete(socket))
        socket.on('data', () => {
          if (nowMs - (idleSince.get(socket) ?? 0) >= keepAliveMs) return socket.destroy()
          idleSince.set(socket, nowMs)
          return socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
        })
      })
      const pool = new UpstreamPool({
        ...{ connectMs: 60_000, firstByteMs: 60_000, idleMs: 60_000, queueMs: 60_000 },
        ...{ maxConnections: 8, maxStreams: 8, maxQueued: 8, maxAgeMs: 1e9, maxRequests: 0 },
        open: connectionOpener(new URL(backend.url)),
        now: () => nowMs,
        random: () => 0,
      })
      expect(await post(pool)).toBe('ok')
      /** Advances the clock, closes the connections that have been idle for `closedAtMs`, and waits until the pool has noticed. */
      const pass = async (ms: number, closedAtMs: number): Promise<void> => {
        nowMs += ms
        for (const [socket, sinceMs] of idleSince) {
          if (nowMs - sinceMs < closedAtMs) continue
          idleSince.delete(socket)
          socket.end()
        }
        await eventually('the pool has seen it', () => pool.size === idleSince.size)
      }
      await pass(keepAliveMs * observed, keepAliveMs)
      const replies: string[] = []
      for (const gap of gaps) {
        await pass(keepAliveMs * gap, keepAliveMs * 1.2)
        replies.push(await post(pool))
      }
      pool.destroy()
      expect(replies).toEqual(gaps.map(() => 'ok'))
      // Young connections are used again.
      const reusable = gaps
        .slice(1)
        .filter((gap) => gap < 0.5 && keepAliveMs * gap < keepAliveMs - 1_000).length
      expect(backend.connections.length).toBeLessThanOrEqual(1 + gaps.length - reusable)
    }),
    { numRuns: runs(300) },
  )
})
