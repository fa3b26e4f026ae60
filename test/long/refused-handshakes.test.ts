import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { authorityFile, tlsSettings } from '../support/network/certificates.ts'
import { startGateway } from '../support/gateway/gateway.ts'
import { passes } from '../support/wait/passes.ts'

const handshake =
  'GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'

/** More than the buffers of the system and of both sides together. */
const largeBytes = 16 * 1024 * 1024

const protocols: [string, Record<string, string>, (port: number) => Promise<Socket>][] = [
  ['HTTP', {}, open],
  ['HTTPS', tlsSettings(), openTls],
]

async function open(port: number): Promise<Socket> {
  const socket = connectTcp(port, '127.0.0.1')
  await once(socket, 'connect')
  return socket
}

async function openTls(port: number): Promise<Socket> {
  const socket = connectTls({ port, host: 'localhost', ca: readFileSync(authorityFile) })
  await once(socket, 'secureConnect')
  return socket
}

async function readToEnd(socket: Socket): Promise<string> {
  let received = ''
  socket.on('error', () => undefined)
  socket.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')))
  await new Promise((resolve) => socket.once('close', resolve))
  return received
}

function bodyBytes(received: string): number {
  return received.length - (received.indexOf('\r\n\r\n') + 4)
}

describe.each(protocols)('over %s', (_, settings, connect) => {
  test('a large response other than 101 to a WebSocket handshake arrives whole', async () => {
    const backend = await startBackend()
    const upgraded = once(backend.server, 'upgrade')
    backend.server.on('upgrade', (_request, socket: Socket) => {
      socket.on('error', () => undefined)
      socket.write(`HTTP/1.1 404 Not Found\r\nContent-Length: ${largeBytes}\r\n\r\n`)
      socket.write(Buffer.alloc(largeBytes, 'x'))
    })
    const gateway = await startGateway({ UPSTREAM_URL: backend.url, ...settings })
    const client = await connect(gateway.port)
    client.write(handshake)
    const received = await readToEnd(client)
    expect(received).toMatch(/^HTTP\/1\.1 404 /)
    expect(bodyBytes(received)).toBe(largeBytes)
    // Node's server hands an upgraded socket over and does not close it.
    const [, socket] = (await upgraded) as [unknown, Socket]
    socket.destroy()
  })

  test('a client that does not read such a response is disconnected after SEND_TIMEOUT', async () => {
    const backend = await startBackend()
    const upgraded = once(backend.server, 'upgrade')
    const gateway = await startGateway({ UPSTREAM_URL: backend.url, SEND_TIMEOUT: '500ms', ...settings })
    const client = await connect(gateway.port)
    client.on('error', () => undefined)
    client.write(handshake)
    const [, socket] = (await upgraded) as [unknown, Socket]
    socket.on('error', () => undefined)
    socket.write(`HTTP/1.1 404 Not Found\r\nContent-Length: ${largeBytes}\r\n\r\n`)
    socket.write(Buffer.alloc(largeBytes, 'x'))
    await new Promise((resolve) => socket.once('close', resolve))
    client.destroy()
  })

  test('a client that has read all there was is not disconnected while the backend is slow', async () => {
    const backend = await startBackend()
    const upgraded = once(backend.server, 'upgrade')
    const gateway = await startGateway({ UPSTREAM_URL: backend.url, SEND_TIMEOUT: '400ms', ...settings })
    const client = await connect(gateway.port)
    client.write(handshake)
    const received = readToEnd(client)
    const [, socket] = (await upgraded) as [unknown, Socket]
    socket.on('error', () => undefined)
    socket.write(`HTTP/1.1 404 Not Found\r\nContent-Length: ${largeBytes + 1}\r\n\r\n`)
    await new Promise((resolve) => socket.write(Buffer.alloc(largeBytes, 'x'), resolve))
    // Longer than SEND_TIMEOUT allows a client for the next piece.
    await passes(1_500)
    socket.write('y')
    expect(bodyBytes(await received)).toBe(largeBytes + 1)
    socket.destroy()
  })

  test('a CONNECT after a download does not stop it', async () => {
    const backend = await startBackend((_request, response) => response.end(Buffer.alloc(largeBytes, 'x')))
    const gateway = await startGateway({ UPSTREAM_URL: backend.url, ...settings })
    const client = await connect(gateway.port)
    client.write('GET /large HTTP/1.1\r\nHost: a\r\n\r\nCONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n')
    const received = await readToEnd(client)
    expect(received.slice(largeBytes)).toMatch(/x{9}HTTP\/1\.1 405 /)
    expect(bodyBytes(received)).toBeGreaterThan(largeBytes)
  })
})
