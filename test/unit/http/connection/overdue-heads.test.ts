import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createHttp1Connections } from '../../../../proxy/http/connection/http1/connections.ts'
import { eventually } from '../../../support/wait/eventually.ts'

const HEADERS_MS = 100

/** Opens connections that each have received part of a head, on a clock that the test advances. */
async function openWithPartsOfHeads(count: number, onFault: (turn: number) => void) {
  const clock = { nowMs: 0 }
  const served: string[] = []
  let turn = 0
  const nextTurn = (): void => {
    turn++
    immediate = setImmediate(nextTurn)
  }
  let immediate = setImmediate(nextTurn)
  const http1 = createHttp1Connections(
    { headLimits: { maxBytes: 1024, maxFields: 100 }, idleMs: 60_000, headersMs: HEADERS_MS },
    {
      onRequest: (_, request) => served.push(request.url),
      onFault: (connection, fault) => {
        expect(fault).toBe('late')
        onFault(turn)
        connection.closeSoon()
      },
      onException: (error) => {
        throw error
      },
      onPreface: undefined,
    },
    () => clock.nowMs,
  )
  let begun = 0
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.once('data', () => begun++)
    http1.serve(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const clients = Array.from({ length: count }, () => connect(port, '127.0.0.1'))
  for (const client of clients) client.write('GET /in-time HTTP/1.1\r\n')
  onTestFinished(() => {
    clearImmediate(immediate)
    for (const client of clients) client.destroy()
    server.close()
    http1.close()
  })
  await eventually('all connections are open', () => expect(begun).toBe(count))
  return { clock, clients, served }
}

// Closing a connection takes time, above all over TLS.
test('connections with overdue heads are closed a few in each turn of the event loop', async () => {
  const inTurns = new Map<number, number>()
  const { clock } = await openWithPartsOfHeads(40, (turn) => inTurns.set(turn, (inTurns.get(turn) ?? 0) + 1))
  clock.nowMs = HEADERS_MS
  await eventually('all overdue ones have ended', () =>
    expect([...inTurns.values()].reduce((sum, ended) => sum + ended, 0)).toBe(40),
  )
  expect(Math.max(...inTurns.values())).toBeLessThanOrEqual(8)
})

test('a head that has arrived in the meantime is not overdue', async () => {
  let faults = 0
  const { clock, clients, served } = await openWithPartsOfHeads(40, () => {
    if (faults++ === 0) clients.at(-1)?.write('Host: a\r\n\r\n')
  })
  clock.nowMs = HEADERS_MS
  await eventually('all but the one in time have failed', () =>
    expect([faults, served]).toEqual([39, ['/in-time']]),
  )
})
