import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { connect as connectTcp, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startBackend, startRawBackend, type Backend } from '../support/http/backend.ts'
import { authorityFile, tlsSettings } from '../support/network/certificates.ts'
import { send, startGateway } from '../support/gateway/gateway.ts'
import { otherBounds, startHosted } from '../support/gateway/hosted-gateway.ts'
import { readConversation, type Conversation } from '../support/http/raw-client.ts'
import { eventually } from '../support/wait/eventually.ts'

// How HTTP/1 connections end: complete responses arrive in full, and truncated ones do not look complete.

const held = new Map<string, ServerResponse>()
let backend: Backend

beforeAll(async () => {
  backend = await startBackend((request, response) => {
    if (request.url?.startsWith('/held')) held.set(request.url, response)
    else if (request.url === '/long') response.end(Buffer.alloc(16 * 1024 * 1024))
    else response.end(`answer to ${request.url ?? ''}`)
  })
})

type Client = { readonly socket: Socket; readonly ended: Promise<Conversation> }

async function open(port: number, secure: boolean): Promise<Client> {
  const tcp = connectTcp({ port, host: '127.0.0.1', allowHalfOpen: true })
  await once(tcp, 'connect')
  const options = {
    socket: tcp,
    host: 'localhost',
    ca: readFileSync(authorityFile),
    maxVersion: 'TLSv1.2',
  } as const
  const socket = secure ? connectTls(options) : tcp
  if (secure) await once(socket, 'secureConnect')
  const pieces: Buffer[] = []
  let ended: Conversation['ended'] = 'open'
  socket.on('data', (chunk: Buffer) => pieces.push(chunk))
  socket.on('end', () => {
    ended = 'closed'
    socket.end()
  })
  socket.on('error', () => (ended = 'reset'))
  const closed = new Promise((resolve) => socket.on('close', resolve))
  return {
    socket,
    ended: closed.then(() => readConversation(Buffer.concat(pieces).toString('latin1'), ended, false)),
  }
}

/** Passes connections on to a port, and notes the types of the TLS 1.2 records that come back (RFC 5246 section 6.2.1). */
async function recordTypes(port: number): Promise<{ port: number; types: number[] }> {
  const types: number[] = []
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const gateway = connectTcp({ port, host: '127.0.0.1', allowHalfOpen: true })
    for (const side of [client, gateway]) side.on('error', () => undefined)
    let bytes = Buffer.alloc(0)
    gateway.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk])
      while (bytes.length >= 5 && bytes.length >= 5 + bytes.readUInt16BE(3)) {
        types.push(bytes.readUInt8(0))
        bytes = bytes.subarray(5 + bytes.readUInt16BE(3))
      }
    })
    client.pipe(gateway).pipe(client)
  })
  servers.push(server.listen(0, '127.0.0.1'))
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, types }
}
const alert = 21
const servers: Server[] = []
afterAll(() => {
  for (const server of servers) server.close()
})

function untilHeld(path: string): Promise<ServerResponse> {
  return eventually(`${path} has arrived`, () => {
    const response = held.get(path)
    held.delete(path)
    return response ?? false
  })
}

function get(path: string, fields = ''): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`
}

/** 8 MB, which is more than the buffers of the system hold. */
const flood = get('/more', `X-Fill: ${'f'.repeat(4_000)}\r\n`).repeat(2_000)

describe.each([
  ['HTTP', {}, false],
  ['HTTPS', tlsSettings(), true],
] as [string, Record<string, string>, boolean][])('over %s', (_, settings, secure) => {
  test('the answer after which the client wants to close arrives although it has sent more', async () => {
    const gateway = await startHosted({
      UPSTREAM_URL: backend.url,
      ...settings,
    })
    for (let round = 0; round < 5; round++) {
      const client = await open(gateway.port, secure)
      client.socket.write(get('/1') + get('/2') + get('/3', 'Connection: close\r\n') + flood)
      const { responses, ended, rest } = await client.ended
      expect(responses.map(({ body }) => body)).toEqual(['/1', '/2', '/3'].map((path) => `answer to ${path}`))
      expect(responses.at(-1)?.head).toMatch(/\r\nconnection: close/i)
      expect({ ended, rest }).toEqual({ ended: 'closed', rest: '' })
    }
    expect(backend.seen.filter(({ url }) => url === '/more')).toEqual([])
  })

  test('the last response before the gateway stops arrives although the client has sent more', async () => {
    const gateway = await startGateway({ UPSTREAM_URL: backend.url, ...settings })
    const client = await open(gateway.port, secure)
    client.socket.write(get('/held'))
    const response = await untilHeld('/held')
    const exit = gateway.process.stop('SIGTERM')
    await gateway.process.waitForLine(/"msg":"stopping"/)
    client.socket.write(flood)
    response.end('answer')
    const { responses, ended, rest } = await client.ended
    expect(responses.map(({ body }) => body)).toEqual(['answer'])
    expect({ ended, rest }).toEqual({ ended: 'closed', rest: '' })
    expect(await exit).toBe(0)
    expect(backend.seen.filter(({ url }) => url === '/more')).toEqual([])
  })

  test('a truncated response to HTTP/1.0 does not look complete to a client that has ended its direction', async () => {
    const gateway = await startHosted({ UPSTREAM_URL: backend.url, ...settings })
    const { port, types } = await recordTypes(gateway.port)
    const client = await open(secure ? port : gateway.port, secure)
    client.socket.write('GET /held HTTP/1.0\r\nHost: a\r\n\r\n')
    const response = await untilHeld('/held')
    const gone = new Promise((resolve) => response.on('close', resolve))
    response.write('the first part')
    await once(client.socket, 'data')
    client.socket.end()
    const { ended } = await client.ended
    await gone
    if (secure) expect(types).not.toContain(alert)
    else expect(ended).toBe('reset')
  })

  test('a client that reads nothing of a long response and ends its direction has its connection closed', async () => {
    const gateway = await startHosted({ UPSTREAM_URL: backend.url, ...settings })
    const client = await open(gateway.port, secure)
    client.socket.pause()
    client.socket.write(get('/long'))
    const readUnread = async (): Promise<number> =>
      Number(
        /^sluice_table_entries\{table="unread-bytes"\} (\d+)$/m.exec(
          (await send(gateway.adminPort, 'GET', '/metrics')).body,
        )?.[1],
      )
    await eventually('the gateway waits for the client', async () =>
      expect(await readUnread()).toBeGreaterThan(0),
    )
    client.socket.end()
    await eventually('the connection is closed', async () =>
      expect((await send(gateway.adminPort, 'GET', '/metrics')).body).toMatch(/^sluice_connections 0$/m),
    )
    client.socket.destroy()
  })

  test('a response that was complete is sent whole to a client that has ended its direction', async () => {
    const gateway = await startHosted({ UPSTREAM_URL: backend.url, ...settings })
    const client = await open(gateway.port, secure)
    client.socket.write('GET /whole HTTP/1.0\r\nHost: a\r\n\r\n')
    await once(client.socket, 'data')
    client.socket.end()
    const { responses, ended } = await client.ended
    expect(responses.map(({ body }) => body)).toEqual(['answer to /whole'])
    expect(ended).toBe('closed')
  })

  test('a response that the backend breaks off does not affect the one before it', async () => {
    const bytes = 12 * 1024 * 1024
    let breakOff: () => void = () => undefined
    const fragile = await startRawBackend((socket) => {
      socket.on('data', (chunk) => {
        if (chunk.includes('/large')) {
          socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n`)
          socket.write(Buffer.alloc(bytes, 'x'))
        } else {
          socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart')
          breakOff = () => socket.resetAndDestroy()
        }
      })
    })
    const gateway = await startHosted({
      UPSTREAM_URL: fragile.url,
      ...otherBounds({ responseBufferBytes: 0 }),
      ...settings,
    })
    const client = await open(gateway.port, secure)
    client.socket.write(get('/large') + get('/part'))
    // Reads slowly from the start: the system's buffer for this client then stays small, and the gateway's stays full.
    client.socket.on('data', () => {
      client.socket.pause()
      setTimeout(() => client.socket.resume(), 5)
      breakOff()
    })
    const { responses, rest } = await client.ended
    expect(responses.map(({ body }) => body.length)).toEqual([bytes])
    expect(rest).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  })
})
