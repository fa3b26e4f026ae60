import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, expect, test } from 'vitest'
import { startBackend, startRawBackend } from '../support/http/backend.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import type { Bounds } from '../../proxy/config/bounds.ts'
import { send } from '../support/gateway/gateway.ts'
import { otherBounds, startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2 } from '../support/http/http2.ts'
import { untilMatches } from '../support/wait/until-matches.ts'

// Some clients occupy the connections to the backend for long: by not reading, with event streams, with requests for slow responses. A
// client from another address must still be served.

const greedy = ['127.0.0.2', '127.0.0.3', '127.0.0.4']
const other = { from: '127.0.0.9' }

async function startFew(
  env: Record<string, string> = {},
  bounds: Partial<Bounds> = {},
): Promise<HostedGateway> {
  // More than the kernel buffers for a client that does not read.
  const large = Buffer.alloc(16 * 1024 * 1024, 'x')
  const backend = await startBackend((request, response) => {
    if (request.url === '/large') response.end(large)
    else if (request.url === '/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: hello\n\n')
    } else if (request.url !== '/never') response.end('ok')
  })
  return startHosted({
    UPSTREAM_URL: backend.url,
    UPSTREAM_CONNECTIONS: '8',
    UPSTREAM_QUEUE: '20',
    UPSTREAM_CONNECT_TIMEOUT: '10s',
    ...otherBounds({ responseBufferBytes: 0, ...bounds }),
    ...env,
  })
}

const opened: Socket[] = []
afterAll(() => opened.forEach((socket) => socket.destroy()))

/** Sends a request whose response the client does not read, or the backend does not complete. */
function ask(port: number, path: string, from: string): Socket {
  const socket = connect({ host: '127.0.0.1', port, localAddress: from })
  opened.push(socket)
  socket.on('error', () => undefined)
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
  socket.pause()
  return socket
}

async function expectServed({ port }: HostedGateway): Promise<void> {
  for (let round = 0; round < 5; round++)
    expect(await send(port, 'GET', '/', other)).toMatchObject({ status: 200, body: 'ok' })
}

/** Waits until the number of entries in a table of the gateway matches the pattern. */
function untilEntries({ adminPort }: HostedGateway, table: string, entries: string): Promise<void> {
  const line = new RegExp(`^sluice_table_entries{table="${table}"} ${entries}$`, 'm')
  return untilMatches(async () => (await send(adminPort, 'GET', '/metrics')).body, line)
}

test('others are served while some clients do not read their responses', async () => {
  const gateway = await startFew()
  for (const from of greedy) for (let i = 0; i < 8; i++) ask(gateway.port, '/large', from)
  // More streams than the limit of connections, which does not include connections with a long response.
  await untilEntries(gateway, 'upstream-streams', '(1[6-9]|2[0-4])')
  await expectServed(gateway)
})

test('others are served while some clients hold many event streams', async () => {
  const gateway = await startFew()
  const streams = Array.from({ length: 60 }, (_, i) =>
    ask(gateway.port, '/events', greedy[i % greedy.length] ?? ''),
  )
  await Promise.all(
    streams.map(async (socket) => {
      socket.resume()
      await once(socket, 'data')
    }),
  )
  await expectServed(gateway)
})

test('others are served while some clients keep the flow-control windows of HTTP/2 streams closed', async () => {
  const gateway = await startFew(tlsSettings())
  const session = connectHttp2(gateway.port, { settings: { initialWindowSize: 0 } })
  const streams = Array.from({ length: 60 }, () => session.request({ ':path': '/large' }))
  await Promise.all(streams.map((stream) => once(stream, 'response')))
  const from = { localAddress: other.from }
  const elsewhere = connectHttp2(gateway.port, from)
  for (let round = 0; round < 5; round++) {
    const [headers] = (await once(elsewhere.request({ ':path': '/' }), 'response')) as [object]
    expect(headers).toMatchObject({ ':status': 200 })
  }
})

test('requests that the backend does not answer leave connections, and places in the queue, to others', async () => {
  const gateway = await startFew()
  for (let i = 0; i < 60; i++) ask(gateway.port, '/never', '127.0.0.2')
  // 7 requests have a connection, 20 wait, and the others have been refused.
  await untilEntries(gateway, 'upstream-queue', '20')
  await expectServed(gateway)
})

test('a connection to the backend is replaced after a number of requests, and after a time', async () => {
  const perConnection: number[] = []
  const backend = await startRawBackend((socket, index) => {
    socket.on('data', () => {
      perConnection[index] = (perConnection[index] ?? 0) + 1
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: timeout=60\r\n\r\nok')
    })
  })
  const counted = await startHosted({
    UPSTREAM_URL: backend.url,
    ...otherBounds({ upstreamMaxRequests: 3 }),
  })
  for (let i = 0; i < 7; i++) await counted.send('GET', '/')
  expect(perConnection).toEqual([3, 3, 1])

  perConnection.length = 0
  backend.connections.length = 0
  const aged = await startHosted({
    UPSTREAM_URL: backend.url,
    ...otherBounds({ upstreamMaxAgeMs: 1000 }),
  })
  const first = backend.connections.length
  while (backend.connections.length - first < 3) await aged.send('GET', '/')
  // The connections were busy all the time, but were still replaced.
  expect(perConnection.slice(first, first + 2).every((requests) => requests > 1)).toBe(true)
})

test('unread responses are bounded in total: the client with the most loses connections', async () => {
  const gateway = await startFew({ SEND_TIMEOUT: '60s', ...tlsSettings() }, { maxUnreadBytes: 1024 * 1024 })
  const modest = connectHttp2(gateway.port, { settings: { initialWindowSize: 0 }, localAddress: other.from })
  const kept = modest.request({ ':path': '/large' })
  await once(kept, 'response')
  const sessions = Array.from({ length: 5 }, () =>
    connectHttp2(gateway.port, { settings: { initialWindowSize: 0 } }),
  )
  for (const session of sessions)
    for (let i = 0; i < 10; i++) session.request({ ':path': '/large' }).on('error', () => undefined)
  await Promise.race(sessions.map((session) => new Promise((resolve) => session.once('close', resolve))))
  await gateway.waitForLine(/clients leave too many responses unread/)
  await untilEntries(gateway, 'unread-bytes', '[0-9]{1,6}')
  expect(modest.destroyed).toBe(false)
  expect(kept.destroyed).toBe(false)
})
