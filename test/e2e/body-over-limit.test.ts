import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { beforeAll, expect, test } from 'vitest'
import { startRawBackend, type RawBackend } from '../support/http/backend.ts'
import { startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { connectHttp2 } from '../support/http/http2.ts'

// A backend begins its response, and then the request body turns out to be too long. The rest of the response cannot arrive, as the gateway
// closes the connection to the backend, but the client still gets the received part. Here the gateway reads both in one turn of its event
// loop, as it would when busy: the test stops the process until both have arrived.

const partOfResponse = 'HTTP/1.1 200 OK\r\nX-Early: 1\r\nContent-Length: 100\r\n\r\npart'

let backend: RawBackend
let gateway: GatewayProcess
/** Called with the connection on which a request has arrived. */
let onRequest: (socket: Socket) => void

beforeAll(async () => {
  backend = await startRawBackend((socket) =>
    socket.once('data', () => {
      onRequest(socket)
    }),
  )
  gateway = await startGateway({ UPSTREAM_URL: backend.url, MAX_BODY_SIZE: '1k' })
})

/** Waits for the request, and makes the gateway find the beginning of the response and more of the body at the same time. */
async function answerAndExceed(begin: () => void, sendMore: () => Promise<void>): Promise<void> {
  const upstream = await new Promise<Socket>((resolve) => {
    onRequest = resolve
    begin()
  })
  // Answered by the gateway itself, which shows that its event loop has handled all earlier events.
  expect((await gateway.send('TRACE', '/')).status).toBe(405)
  const { child } = gateway.process
  child.kill('SIGSTOP')
  await new Promise<void>((resolve) => upstream.write(partOfResponse, () => resolve()))
  await sendMore()
  child.kill('SIGCONT')
}

test('over HTTP/1.1 the client gets the truncated response, and the connection ends', async () => {
  const client = connect(gateway.port, '127.0.0.1')
  const received = text(client)
  await answerAndExceed(
    () =>
      client.write(
        `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1f4\r\n${'x'.repeat(500)}\r\n`,
      ),
    () => new Promise((resolve) => client.write(`3e8\r\n${'x'.repeat(1000)}\r\n`, () => resolve())),
  )
  expect(await received).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*x-early: 1\r\n[^]*\r\n\r\npart$/i)
})

test('over HTTP/2 the client gets the truncated response, and the stream is reset', async () => {
  const session = connectHttp2(gateway.port, { cleartext: true })
  const stream = session.request({ ':method': 'POST' })
  stream.setEncoding('latin1')
  const heard: unknown[] = []
  stream.on('response', (fields) => heard.push(fields[':status'], fields['x-early']))
  stream.on('data', (piece) => heard.push(piece))
  stream.on('error', () => undefined)
  const closed = new Promise((resolve) => stream.on('close', resolve))
  await answerAndExceed(
    () => stream.write('x'.repeat(500)),
    () => new Promise((resolve) => stream.write('x'.repeat(1000), () => resolve())),
  )
  await closed
  expect(heard).toEqual([200, '1', 'part'])
  expect(stream.rstCode).not.toBe(0)
})
