import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { connect, type TLSSocket } from 'node:tls'
import { beforeAll, expect, test } from 'vitest'
import { startBackend, type Backend } from '../support/http/backend.ts'
import { authorityFile, tlsSettings } from '../support/network/certificates.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { readConversation } from '../support/http/raw-client.ts'
import { eventually } from '../support/wait/eventually.ts'
import { atRest, passes } from '../support/wait/passes.ts'

/**
 * A response that goes on until `end` is called, because the size of the system's buffers differs from machine to machine and from
 * connection to connection.
 */
class EndlessResponse {
  readonly #response: ServerResponse
  bytes = 0
  #ends = false

  constructor(response: ServerResponse) {
    this.#response = response
    response.on('drain', () => this.#write())
    this.#write()
  }

  /** Ends the response once everything written so far has been accepted. */
  end(): void {
    this.#ends = true
  }

  #write(): void {
    const piece = Buffer.alloc(65_536, 'x')
    while (!this.#ends) {
      this.bytes += piece.length
      if (!this.#response.write(piece)) return
    }
    this.#response.end()
  }
}

let backend: Backend
let gateway: HostedGateway
/** The responses that were begun. */
const endless: EndlessResponse[] = []

beforeAll(async () => {
  backend = await startBackend((request, response) => {
    if (request.url === '/large') {
      endless.push(new EndlessResponse(response))
      return
    }
    let bytes = 0
    request.on('data', (chunk: Buffer) => (bytes += chunk.length))
    request.on('end', () => response.end(`${request.url} ${bytes}`))
  })
  gateway = await startHosted({ UPSTREAM_URL: backend.url, ...tlsSettings() })
})

/** Opens a connection whose first response waits for its client to read. Also returns the length of that response. */
async function connectUnread(): Promise<{ socket: TLSSocket; largeBytes: number }> {
  const socket = connect({ port: gateway.port, host: 'localhost', ca: readFileSync(authorityFile) })
  await once(socket, 'secureConnect')
  socket.pause()
  endless.length = 0
  socket.write(get('/large'))
  const response = await eventually('the request has arrived', () => endless[0] ?? false)
  const largeBytes = await atRest(() => response.bytes)
  response.end()
  return { socket, largeBytes }
}

function get(path: string, fields = ''): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`
}

/** A TLS record carries 16 KiB: longer data arrives in several records, which are decrypted one after another. */
const fill = `X-Fill: ${'f'.repeat(3_000)}\r\n`

async function bodiesOf(socket: TLSSocket): Promise<string[]> {
  const pieces: Buffer[] = []
  socket.on('data', (chunk: Buffer) => pieces.push(chunk)).resume()
  await once(socket, 'close')
  const { responses, rest } = readConversation(Buffer.concat(pieces).toString('latin1'), 'closed', false)
  expect(rest).toBe('')
  return responses.map(({ body }) => (body.length > 100 ? String(body.length) : body))
}

test('requests in several TLS records are served although an answer waits for its client', async () => {
  const { socket, largeBytes } = await connectUnread()
  const paths = Array.from({ length: 40 }, (_, i) => `/${i}`)
  socket.write(paths.map((path) => get(path, fill)).join('') + get('/last', 'Connection: close\r\n'))
  // Lets the requests arrive, as far as the gateway reads them, before the response goes on.
  await passes(300)
  expect(await bodiesOf(socket)).toEqual([String(largeBytes), ...paths.map((path) => `${path} 0`), '/last 0'])
})

test('bodies in several TLS records are read whole', async () => {
  const { socket, largeBytes } = await connectUnread()
  const post = (bytes: number): string =>
    `POST /post HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n${'b'.repeat(bytes)}`
  const chunk = `2710\r\n${'c'.repeat(10_000)}\r\n`
  const chunked = `POST /chunked HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(9)}0\r\n\r\n`
  socket.write(post(5_000) + post(50_000) + chunked + get('/last', 'Connection: close\r\n'))
  await passes(300)
  expect(await bodiesOf(socket)).toEqual([
    String(largeBytes),
    '/post 5000',
    '/post 50000',
    '/chunked 90000',
    '/last 0',
  ])
})

test('a malformed request in a later TLS record is 400, after the responses before it', async () => {
  const { socket } = await connectUnread()
  socket.write(get('/a', fill).repeat(10) + 'GARBAGE\r\n\r\n' + get('/never', fill).repeat(10))
  await passes(300)
  const bodies = await bodiesOf(socket)
  expect(bodies.slice(1, -1)).toEqual(Array.from({ length: 10 }, () => '/a 0'))
  expect(bodies.at(-1)).toContain('"code":400')
  expect(backend.seen.filter(({ url }) => url === '/never')).toEqual([])
})
