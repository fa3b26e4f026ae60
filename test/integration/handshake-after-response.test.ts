import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { admitted } from '../../proxy/http/connection/connection-limit.ts'
import type { ClientRequest } from '../../proxy/http/message/client-request.ts'
import type { ClientResponse } from '../../proxy/http/message/client-response.ts'
import { serveClients, type ListenerDeps } from '../../proxy/server/listener.ts'
import { authorityFile, readPair } from '../support/network/certificates.ts'

/*
 * A client that has read all of a response may send its handshake before the gateway knows that the response was sent: over TLS the gateway
 * learns of that a turn of the event loop later. Here the response is large, and the client sends the handshake before it reads.
 */

const bodyBytes = 16 * 1024 * 1024
const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
const handshake =
  'GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
  'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n'

type Served = { readonly path: string | undefined; readonly upgrades: boolean }

/** Answers requests with a large body, and handshakes with a small one. Closes the connection after `/last`. */
async function serve(secure: boolean): Promise<{ served: Served[]; client: Socket }> {
  const served: Served[] = []
  const handler = (request: ClientRequest, response: ClientResponse, open?: unknown): void => {
    served.push({ path: request.url, upgrades: open !== undefined })
    if (request.url === '/last') response.closeAfterResponse()
    const body = open ? Buffer.from('served') : Buffer.alloc(bodyBytes, 'r')
    response.writeHead(200, ['content-length', String(body.length)])
    response.end(body)
  }
  const server = secure ? createTlsServer(readPair('first')) : createServer({ allowHalfOpen: true })
  if (!secure) server.on('connection', (socket: Socket) => server.emit(admitted, socket))
  serveClients(server, {
    handler,
    limits: {
      headLimits: { maxBytes: 16_384, maxFields: 100 },
      idleMs: 5_000,
      headersMs: 5_000,
    },
    tunnels: {},
    now: () => performance.now(),
    onException: (error: unknown) => {
      throw error
    },
  } as unknown as ListenerDeps)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = secure
    ? connectTls({ port, host: 'localhost', ca: readFileSync(authorityFile) })
    : connect(port, '127.0.0.1')
  onTestFinished(() => {
    client.destroy()
    server.close()
  })
  await once(client, secure ? 'secureConnect' : 'connect')
  return { served, client }
}

async function readAll(client: Socket): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of client) pieces.push(piece as Buffer)
  return Buffer.concat(pieces).toString('latin1')
}

for (const [protocol, secure] of [
  ['HTTP', false],
  ['HTTPS', true],
] as const) {
  test(`a handshake after a response that is still being sent is served after it, over ${protocol}`, async () => {
    const { served, client } = await serve(secure)
    client.write(get('/large'))
    await once(client, 'readable')
    client.write(handshake)
    const answers = await readAll(client)
    expect(served).toEqual([
      { path: '/large', upgrades: false },
      { path: '/socket', upgrades: true },
    ])
    expect(answers.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2)
    expect(answers.slice(-6)).toBe('served')
    expect(answers.indexOf('HTTP/1.1 200 OK', 1)).toBeGreaterThan(bodyBytes)
  })

  test(`a handshake after a response that closes the connection is not served, over ${protocol}`, async () => {
    const { served, client } = await serve(secure)
    client.write(get('/last'))
    await once(client, 'readable')
    client.write(handshake)
    const answers = await readAll(client)
    expect(served).toEqual([{ path: '/last', upgrades: false }])
    expect(answers.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(1)
    expect(answers.length).toBeGreaterThan(bodyBytes)
  })
}
