import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { startBackend, startRawBackend, type Backend } from '../support/http/backend.ts'
import { send } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { untilQueued } from '../support/wait/until-queued.ts'
import { eventually } from '../support/wait/eventually.ts'
import { passes } from '../support/wait/passes.ts'

/** Starts a backend that answers `/held` only when a test does, and a gateway with few connections to it. */
async function startNarrow(
  settings: Record<string, string>,
): Promise<{ backend: Backend; gateway: HostedGateway; held: ServerResponse[] }> {
  const held: ServerResponse[] = []
  const backend = await startBackend((request, response) => {
    if (request.url === '/held') held.push(response)
    else request.resume().on('end', () => response.end('ok'))
  })
  return { backend, held, gateway: await startHosted({ UPSTREAM_URL: backend.url, ...settings }) }
}

const busy = { status: 503, body: '{"code":503,"error":"The backend is busy"}' }

test('requests beyond all connections wait in turn, and beyond the queue are refused', async () => {
  const { gateway, held } = await startNarrow({ UPSTREAM_CONNECTIONS: '2', UPSTREAM_QUEUE: '1' })
  const get = (path: string) => send(gateway.port, 'GET', path)
  const first = [get('/held'), get('/held')]
  await eventually('two requests are held', () => held.length === 2)
  const waiting = get('/next')
  let refused = await get('/refused')
  // Either of the two may have arrived first.
  if (refused.status === 200) refused = await waiting
  expect(refused).toMatchObject(busy)
  expect(refused.headers['retry-after']).toBe('1')
  held[0]?.end('done')
  expect(await waiting).toMatchObject({ status: 200, body: 'ok' })
  held[1]?.end('done')
  expect(await Promise.all(first)).toMatchObject([{ body: 'done' }, { body: 'done' }])
})

test('no request waits longer than UPSTREAM_CONNECT_TIMEOUT, and a client that disconnects frees its place', async () => {
  const { backend, gateway, held } = await startNarrow({
    UPSTREAM_CONNECTIONS: '1',
    UPSTREAM_QUEUE: '1',
    UPSTREAM_CONNECT_TIMEOUT: '2s',
  })
  const first = send(gateway.port, 'GET', '/held')
  await eventually('one request is held', () => held.length === 1)
  const leaver = connect(gateway.port, '127.0.0.1')
  leaver.write('GET /leaver HTTP/1.1\r\nHost: a\r\n\r\n')
  await untilQueued(gateway, 'upstream-queue', 1)
  expect(await send(gateway.port, 'GET', '/beyond')).toMatchObject(busy)
  leaver.destroy()
  await untilQueued(gateway, 'upstream-queue', 0)
  const startedMs = performance.now()
  expect(await send(gateway.port, 'GET', '/waiting')).toMatchObject(busy)
  const waitedMs = performance.now() - startedMs
  expect(waitedMs).toBeGreaterThan(1_900)
  // The wait without the setting.
  expect(waitedMs).toBeLessThan(5_000)
  held[0]?.end()
  await first
  expect(backend.seen.map(({ url }) => url)).toEqual(['/held'])
})

test('a request whose reused connection was closed is sent again before those that wait', async () => {
  const arrived: string[] = []
  const othersWait = Promise.withResolvers<undefined>()
  // The backend closes each connection at its second request.
  const backend = await startRawBackend((socket) => {
    let requests = 0
    socket.on('data', (head) => {
      arrived.push(String(head).split(' ')[1] ?? '')
      if (requests++ === 0) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      else void othersWait.promise.then(() => socket.destroy())
    })
  })
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, UPSTREAM_CONNECTIONS: '1' })
  const get = (path: string) => send(gateway.port, 'GET', path)
  await get('/first')
  const again = get('/again')
  await eventually('two requests have arrived', () => arrived.length === 2)
  const waiting = get('/waiting')
  await untilQueued(gateway, 'upstream-queue', 1)
  othersWait.resolve(undefined)
  expect(await Promise.all([again, waiting])).toMatchObject([{ status: 200 }, { status: 200 }])
  expect(arrived).toEqual(['/first', '/again', '/again', '/waiting', '/waiting'])
})

test('bodies on their way never take all connections', async () => {
  const { gateway } = await startNarrow({ UPSTREAM_CONNECTIONS: '4', UPSTREAM_QUEUE: '20' })
  const uploads = Array.from({ length: 20 }, () => {
    const socket = connect(gateway.port, '127.0.0.1')
    socket.write('POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\n123')
    return socket
  })
  await untilQueued(gateway, 'upload-queue', 17)
  const { body: metrics } = await send(gateway.adminPort, 'GET', '/metrics')
  expect(metrics).toMatch(/^sluice_table_capacity{table="upload-queue"} 20$/m)
  expect(metrics).toMatch(/^sluice_table_entries{table="upstream-queue"} 0$/m)
  expect(metrics).toMatch(/^sluice_table_capacity{table="upstream-queue"} 20$/m)
  // A request without a body, or with a complete body, overtakes the waiting uploads.
  expect(await send(gateway.port, 'GET', '/')).toMatchObject({ status: 200, body: 'ok' })
  expect(await send(gateway.port, 'POST', '/', { body: 'short' })).toMatchObject({ status: 200, body: 'ok' })
  const inTwoPieces = connect(gateway.port, '127.0.0.1')
  inTwoPieces.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n')
  await passes(50)
  inTwoPieces.write('body')
  expect(String(await once(inTwoPieces, 'data'))).toMatch(/^HTTP\/1\.1 200 /)

  // A waiting upload gets its turn once its body is complete, or when others end.
  const answers = uploads.map((socket) => once(socket, 'data'))
  for (const socket of uploads.toReversed()) socket.write('x'.repeat(69_997))
  for (const answer of await Promise.all(answers)) expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /)
})
