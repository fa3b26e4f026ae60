import { Agent, request as httpsRequest } from 'node:https'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { startRawBackend } from '../support/backend.ts'
import { authorityFile, tlsSettings } from '../support/certificates.ts'
import { send, startGateway, type GatewayProcess } from '../support/gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http2.ts'

// A response whose pieces and end arrive in one read of the backend's connection, while its client has no room for all
// of it: the connection must serve the next request as if nothing had been.

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

test('chunks and their end in one read, over HTTP', async () => {
  const gateway = await startWithChunks({})
  for (let round = 0; round < rounds; round++) {
    const { status, body } = await send(gateway.port, 'GET', '/')
    expect([status, body.length]).toEqual([200, bodyBytes])
  }
})
