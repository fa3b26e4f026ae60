import { once } from 'node:events'
import { Agent, request as httpsRequest } from 'node:https'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { expect, test } from 'vitest'
import { startRawBackend } from '../support/http/backend.ts'
import { authorityFile, tlsSettings } from '../support/network/certificates.ts'
import { send, startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { passes } from '../support/wait/passes.ts'

// The pieces and the end of a response arrive in one read of the backend's connection, while the client's buffers cannot take it all. The
// connection must still serve the next request as usual.

const chunkBytes = 8 * 1024
const bodyBytes = 8 * chunkBytes
const chunked =
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n' +
  `${chunkBytes.toString(16)}\r\n${'x'.repeat(chunkBytes)}\r\n`.repeat(bodyBytes / chunkBytes) +
  '0\r\n\r\n'

function serveChunked(socket: Socket): void {
  socket.on('data', () => socket.write(chunked))
}

async function startWithChunks(env: Record<string, string>): Promise<GatewayProcess> {
  const backend = await startRawBackend(serveChunked)
  return startGateway({
    UPSTREAM_URL: backend.url,
    UPSTREAM_CONNECTIONS: '1',
    UPSTREAM_TIMEOUT: '5s',
    ...env,
  })
}

const rounds = 12

test('chunks and their end in one read, over HTTP/1.1 with TLS', async () => {
  const gateway = await startWithChunks(tlsSettings())
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: readFileSync(authorityFile) })
  const get = (): Promise<string> =>
    new Promise((resolve, reject) => {
      httpsRequest({ host: 'localhost', port: gateway.port, agent }, (response) => {
        let bytes = 0
        response.on('data', (chunk: Buffer) => (bytes += chunk.length))
        response.on('end', () => resolve(`${response.statusCode} ${bytes}`))
      })
        .on('error', reject)
        .end()
    })
  for (let round = 0; round < rounds; round++) expect(await get()).toBe(`200 ${bodyBytes}`)
  expect(gateway.process.stderr()).toBe('')
  agent.destroy()
})

test('chunks and their end in one read, over HTTP/2', async () => {
  const gateway = await startWithChunks(tlsSettings())
  const session = connectHttp2(gateway.port)
  for (let round = 0; round < rounds; round++) {
    const { status, body } = await sendHttp2(session, { ':path': '/' })
    expect([status, body.length]).toEqual([200, bodyBytes])
  }
  expect(gateway.process.stderr()).toBe('')
})

test('chunks that arrive in one read with their end are all passed on, over HTTP', async () => {
  const gateway = await startWithChunks({})
  for (let round = 0; round < rounds; round++) {
    const { status, body } = await send(gateway.port, 'GET', '/')
    expect([status, body.length]).toEqual([200, bodyBytes])
  }
})

/** A client that reads only once `read` is called, which resolves with the number of bytes and any error when the connection ends. */
function slowReader(socket: Socket, path = '/'): { read(): Promise<{ bytes: number; error?: string }> } {
  let bytes = 0
  let error: string | undefined
  socket.on('error', ({ code }: NodeJS.ErrnoException) => (error = code))
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  socket.pause()
  return {
    async read() {
      socket.on('data', (chunk: Buffer) => (bytes += chunk.length))
      socket.resume()
      await new Promise((resolve) => socket.once('close', resolve))
      return { bytes, ...(error !== undefined && { error }) }
    },
  }
}

const largeBytes = 8_000_000
const declared = `HTTP/1.1 200 OK\r\nContent-Length: ${largeBytes + 1}\r\n\r\n`

test.each([
  ['HTTP', {}, (port: number) => connect(port, '127.0.0.1')],
  [
    'HTTPS',
    tlsSettings(),
    (port: number) => connectTls({ port, host: 'localhost', ca: readFileSync(authorityFile) }),
  ],
])('bytes that a backend sends before it breaks off reach a slow client, over %s', async (_, env, open) => {
  const backend = await startRawBackend((socket) => {
    socket.on('data', () => {
      socket.write(declared)
      socket.end(Buffer.alloc(largeBytes, 'x'))
    })
  })
  const gateway = await startGateway({ UPSTREAM_URL: backend.url, ...env })
  const reader = slowReader(open(gateway.port))
  // Before the client begins to read, the gateway has received everything, or is blocked by the client.
  await passes(300)
  const { bytes, error } = await reader.read()
  expect(error).toBeUndefined()
  expect(bytes).toBeGreaterThan(largeBytes)
  expect(bytes).toBeLessThan(largeBytes + 1_000)
  expect(gateway.process.stderr()).toBe('')
})

test('over HTTP/2 the client gets the bytes that the backend has sent, and then a reset of the stream', async () => {
  const backend = await startRawBackend((socket) => {
    socket.on('data', () => {
      socket.write(declared)
      socket.end(Buffer.alloc(largeBytes, 'x'))
    })
  })
  const gateway = await startGateway({ UPSTREAM_URL: backend.url, ...tlsSettings() })
  const stream = connectHttp2(gateway.port).request({ ':path': '/' })
  let bytes = 0
  stream.on('error', () => undefined)
  await once(stream, 'response')
  await passes(300)
  stream.on('data', (chunk: Buffer) => (bytes += chunk.length))
  await new Promise((resolve) => stream.once('close', resolve))
  expect(bytes).toBe(largeBytes)
  expect(stream.rstCode).not.toBe(0)
})

test('to an HTTP/1.0 client, a response without a length that is cut short ends with a reset', async () => {
  const backend = await startRawBackend((socket) => {
    socket.on('data', () => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n')
      setTimeout(() => socket.end(), 50)
    })
  })
  const gateway = await startGateway({ UPSTREAM_URL: backend.url })
  const socket = connect(gateway.port, '127.0.0.1')
  socket.write('GET / HTTP/1.0\r\nHost: a\r\n\r\n')
  socket.resume()
  const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException]
  expect(error.code).toBe('ECONNRESET')
})

test('a response of usual size is read ahead of a client that does not read it', async () => {
  const done = Promise.withResolvers<undefined>()
  const backend = await startRawBackend((socket) => {
    socket.on('data', (head) => {
      if (String(head).startsWith('GET /next')) return done.resolve(undefined)
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n${'x'.repeat(200_000)}`)
    })
  })
  const gateway = await startGateway({
    UPSTREAM_URL: backend.url,
    UPSTREAM_CONNECTIONS: '1',
    UPSTREAM_STREAMS: '0',
    ...tlsSettings(),
  })
  // With an empty window, no byte of the body can be sent.
  const session = connectHttp2(gateway.port, { settings: { initialWindowSize: 0 } })
  const stream = session.request({ ':path': '/' })
  await once(stream, 'response')
  session.request({ ':path': '/next' }).on('error', () => undefined)
  await done.promise
  expect(backend.connections.length).toBe(1)
})
