import { once } from 'node:events'
import type { Socket } from 'node:net'
import { beforeAll, expect, test } from 'vitest'
import { startRawBackend, type RawBackend } from '../support/http/backend.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { send } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import {
  connectRawHttp2,
  endHeaders,
  endStream,
  frame,
  frameTypes,
  requestFields,
  uint32,
  type RawHttp2,
} from '../support/http/raw-http2.ts'
import { untilQueued } from '../support/wait/until-queued.ts'
import { eventually } from '../support/wait/eventually.ts'
import { passes } from '../support/wait/passes.ts'

// HTTP/2 clients that cancel a request. For a HEAD request, Node's adapter closes the response only once it has ended.

const resetCodes = { 'no error': 0, 'an internal error': 2, cancel: 8 }

let backend: RawBackend
let gateway: HostedGateway
/** A gateway with one connection to the backend. */
let narrow: HostedGateway

beforeAll(async () => {
  backend = await startRawBackend(() => undefined)
  gateway = await startHosted({ UPSTREAM_URL: backend.url, ...tlsSettings() })
  narrow = await startHosted({
    UPSTREAM_URL: backend.url,
    UPSTREAM_CONNECTIONS: '1',
    UPSTREAM_CONNECT_TIMEOUT: '60s',
    ...tlsSettings(),
  })
})

function headers(stream: number, method: string, flags = endStream): Buffer {
  return frame(frameTypes.headers, endHeaders | flags, stream, requestFields(method, '/'))
}

function body(stream: number): Buffer {
  return frame(frameTypes.data, 0, stream, Buffer.from('the beginning of a body'))
}

function reset(stream: number, code: number): Buffer {
  return frame(frameTypes.rstStream, 0, stream, uint32(code))
}

/** Resolves with the connection on which the next request arrives at the backend, once its head has arrived. */
async function nextRequest(sendIt: () => void): Promise<Socket> {
  const before = backend.connections.length
  sendIt()
  return eventually('the head of the request has arrived', () => {
    const socket = backend.connections[before]?.resume()
    return socket !== undefined && socket.bytesRead > 0 && socket
  })
}

async function uncaughtErrors(): Promise<number> {
  const { body: metrics } = await send(gateway.adminPort, 'GET', '/metrics')
  return Array.from(metrics.matchAll(/^sluice_uncaught_errors_total\{.*\} (\d+)$/gm)).reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  )
}

/** Resolves once the gateway has handled everything sent before on the connection. */
async function untilRead(client: RawHttp2, mark: number): Promise<void> {
  const payload = Buffer.alloc(8, mark)
  client.send(frame(frameTypes.ping, 0, 0, payload))
  await client.waitFor(({ type, payload: echo }) => type === frameTypes.ping && echo.equals(payload))
}

test.each(
  Object.entries(resetCodes).flatMap(([name, code]) =>
    ['GET', 'HEAD', 'GET with content', 'HEAD with content'].map((request) => [request, name, code] as const),
  ),
)('the backend learns that the client of a %s is gone, reset with %s', async (request, _, code) => {
  const [method = '', withContent] = request.split(' ')
  const client = await connectRawHttp2(gateway.port)
  const socket = await nextRequest(() => {
    client.send(headers(1, method, withContent ? 0 : endStream), ...(withContent ? [body(1)] : []))
  })
  client.send(reset(1, code))
  await new Promise((resolve) => socket.once('close', resolve))
  client.socket.destroy()
})

test.each(['GET', 'HEAD'])('early hints for a cancelled %s are not an error', async (method) => {
  const errorsBefore = await uncaughtErrors()
  for (let round = 1; round <= 20; round++) {
    const client = await connectRawHttp2(gateway.port)
    const socket = await nextRequest(() => client.send(headers(1, method)))
    client.send(reset(1, 8))
    if (round % 2 === 0) await untilRead(client, round)
    socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n')
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
    await untilRead(client, 100 + round)
    client.socket.destroy()
  }
  expect(await uncaughtErrors()).toBe(errorsBefore)
  expect(gateway.output()).not.toMatch(/ERR_HTTP2|failed"|exception while/)
})

test.each(
  Object.entries(resetCodes).flatMap(([name, code]) =>
    ['POST', 'HEAD'].map((method) => [method, name, code] as const),
  ),
)('the pending upload of a %s is dropped once it is reset with %s', async (method, _, code) => {
  const client = await connectRawHttp2(narrow.port)
  const uploading = await nextRequest(() => client.send(headers(1, 'POST', 0), body(1)))
  const connections = backend.connections.length
  client.send(headers(3, method, 0), body(3))
  await untilQueued(narrow, 'upload-queue', 1)
  client.send(reset(3, code))
  await untilRead(client, 1)
  uploading.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
  await untilQueued(narrow, 'upload-queue', 0)
  await passes(100)
  expect(backend.connections).toHaveLength(connections)
  client.socket.destroy()
  await once(client.socket, 'close')
})
