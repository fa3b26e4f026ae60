import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import {
  createHttp1Connections,
  type Http1Handlers,
} from '../../../../proxy/http/connection/http1/connections.ts'
import { http1On } from '../../../../proxy/http/http1/connection.ts'
import type { Http1Exchange, ServedConnection } from '../../../../proxy/http/http1/service.ts'
import type { RequestSyntaxError } from '../../../../proxy/http/http1/parser/syntax-error.ts'
import { eventually } from '../../../support/wait/eventually.ts'
import { passes } from '../../../support/wait/passes.ts'

type Served = Http1Exchange & { readonly connection: ServedConnection }

/** A client whose requests are answered when the test decides. */
async function serve(handlers: Partial<Http1Handlers> = {}) {
  const served: Served[] = []
  const faults: (RequestSyntaxError | 'late')[] = []
  const http1 = createHttp1Connections(
    { headLimits: { maxBytes: 1024, maxFields: 100 }, idleMs: 60_000, headersMs: 60_000 },
    {
      onRequest: (connection, request, response) => served.push({ connection, request, response }),
      onFault: (connection, fault) => {
        faults.push(fault)
        connection.closeSoon()
      },
      onException: (error) => {
        throw error
      },
      onPreface: undefined,
      ...handlers,
    },
    () => performance.now(),
  )
  const server = createServer({ allowHalfOpen: true }, (socket) => http1.serve(socket)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [accepted] = (await once(server, 'connection')) as [Socket]
  let received = ''
  client.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')))
  onTestFinished(() => {
    client.destroy()
    accepted.destroy()
    server.close()
    http1.close()
  })
  return { http1, served, faults, client, accepted, received: () => received }
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`

function answer({ response }: Http1Exchange): void {
  response.writeHead(200, ['content-length', '2'])
  response.end(Buffer.from('ok'))
}

test('requests of one connection are served one at a time', async () => {
  const { served, client, received } = await serve()
  client.write(get('/1') + get('/2'))
  await eventually('the request is served', () => served.length === 1)
  await passes(20)
  expect(served.map(({ request }) => request.url)).toEqual(['/1'])
  served.forEach(answer)
  await eventually('both requests are served', () => served.length === 2)
  served.slice(1).forEach(answer)
  await eventually('both answers have come', () => received().split('ok').length === 3)
})

test('a connection lets go of a response that is over, and counts as idle since then', async () => {
  const { http1, served, client, accepted } = await serve()
  const connection = http1On(accepted)
  expect(connection?.exchange).toBeUndefined()
  expect(http1.betweenRequests()).toEqual([])
  client.write(get('/1'))
  await eventually('the request is served', () => served.length === 1)
  expect(connection?.exchange?.request).toBe(served[0]?.request)
  expect(connection?.idleSinceMs).toBeUndefined()
  const answeredMs = performance.now()
  served.forEach(answer)
  await eventually('the exchange is over', () => connection?.exchange === undefined)
  expect(connection?.idleSinceMs).toBeGreaterThanOrEqual(answeredMs)
  expect(http1.betweenRequests()).toEqual([connection])
})

test('a connection keeps a response whose request is still arriving', async () => {
  const { http1, served, client, accepted } = await serve()
  client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n1')
  await eventually('the request is served', () => served.length === 1)
  served.forEach(answer)
  await eventually('the response is cut off', () => served[0]?.response.destroyed === true)
  expect(http1On(accepted)?.exchange?.response).toBe(served[0]?.response)
  client.write('23')
  await eventually('the exchange is over', () => http1On(accepted)?.exchange === undefined)
  client.write('GET /par')
  await eventually('no connection is between requests', () => http1.betweenRequests().length === 0)
})

test('a complete request is served when the gateway begins to stop, and nothing after it', async () => {
  const { http1, served, client, received } = await serve()
  client.write(get('/1') + get('/2') + get('/3') + 'GET /part')
  await eventually('the request is served', () => served.length === 1)
  await passes(20)
  http1.closeAfterResponses()
  client.write('ial HTTP/1.1\r\nHost: a\r\n\r\n' + get('/5'))
  for (let count = 1; count <= 3; count++) {
    await eventually('all requests are served', () => served.length === count)
    served.slice(-1).forEach(answer)
  }
  await once(client, 'close')
  expect(served.map(({ request }) => request.url)).toEqual(['/1', '/2', '/3'])
  expect(received().match(/^connection: .*$/gim)).toEqual([
    'Connection: keep-alive',
    'Connection: keep-alive',
    'Connection: close',
  ])
})

test('a pipelined request is not served if the client disconnects before the response is written', async () => {
  const { served, client, accepted } = await serve()
  client.write(get('/1') + get('/2'))
  await eventually('the request is served', () => served.length === 1)
  served.forEach(answer)
  accepted.destroy()
  await once(accepted, 'close')
  expect(served.map(({ request, response }) => [request.url, response.destroyed])).toEqual([['/1', true]])
})

test('an exception in a listener of the body ends its request only', async () => {
  const caught: unknown[] = []
  const { served, client, received } = await serve({
    onException: (error, exchange) => {
      caught.push(error)
      if (exchange) answer(exchange)
    },
  })
  client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n')
  await eventually('the request is served', () => served.length === 1)
  served[0]?.request.on('data', () => {
    throw new Error('a bug')
  })
  await new Promise((resolve) => setImmediate(resolve))
  client.write('abc')
  await once(client, 'close')
  expect(caught).toEqual([new Error('a bug')])
  expect(received()).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*connection: close[^]*ok$/i)
})

// Requests are read at the end of the turn of the event loop in which they arrive. These tests cover events before that.

const endOfTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('requests of all connections are read when the turn is over', async () => {
  const { accepted, served } = await serve()
  accepted.emit('data', Buffer.from(get('/1')))
  expect(served).toEqual([])
  await endOfTurn()
  expect(served.map(({ request }) => request.url)).toEqual(['/1'])
})

test('a request in several pieces of one turn is whole', async () => {
  const { accepted, served, faults } = await serve()
  for (const piece of get('/pieces').match(/.{1,9}/gs) ?? []) accepted.emit('data', Buffer.from(piece))
  await endOfTurn()
  expect(served.map(({ request }) => request.url)).toEqual(['/pieces'])
  expect(faults).toEqual([])
})

test('a request is served although the client ends its direction in the same turn', async () => {
  const { accepted, served, faults } = await serve()
  accepted.emit('data', Buffer.from(get('/last')))
  accepted.emit('end')
  expect(served.map(({ request }) => request.url)).toEqual(['/last'])
  expect(faults).toEqual([])
})

test('a request of a connection that has closed in the same turn is not served', async () => {
  const { accepted, served } = await serve()
  accepted.emit('data', Buffer.from(get('/gone')))
  accepted.destroy()
  await once(accepted, 'close')
  await endOfTurn()
  expect(served).toEqual([])
})

test('requests that are buffered and unread when the gateway begins to stop are all served', async () => {
  const { http1, accepted, served, received } = await serve()
  accepted.emit('data', Buffer.from(get('/1') + get('/2')))
  http1.closeAfterResponses()
  expect(served.map(({ request }) => request.url)).toEqual(['/1'])
  served.forEach(answer)
  await eventually('both requests are served', () => served.length === 2)
  served.slice(1).forEach(answer)
  await eventually('both answers have come', () => received().split('ok').length === 3)
})

test('a connection whose next request is here and unread is not idle', async () => {
  const { http1, accepted, served, client, received } = await serve()
  client.write(get('/1'))
  await eventually('the request is served', () => served.length === 1)
  served.forEach(answer)
  await eventually('the answer has come', () => received().endsWith('ok'))
  expect([...http1.betweenRequests()]).toHaveLength(1)
  accepted.emit('data', Buffer.from(get('/2')))
  expect(http1On(accepted)?.idleSinceMs).toBeUndefined()
  expect([...http1.betweenRequests()]).toEqual([])
  await endOfTurn()
  expect(served.map(({ request }) => request.url)).toEqual(['/1', '/2'])
})

test('bytes that may be another protocol are read at once, so that it learns of the end of the connection', async () => {
  const told: string[] = []
  const { accepted } = await serve({
    onPreface(socket, bytes) {
      told.push(bytes.toString('latin1'))
      socket.on('data', (more: Buffer) => told.push(more.toString('latin1')))
      socket.on('end', () => told.push('end'))
    },
  })
  const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
  for (const piece of [preface, 'settings']) accepted.emit('data', Buffer.from(piece))
  accepted.emit('end')
  expect(told).toEqual([preface, 'settings', 'end'])
})
