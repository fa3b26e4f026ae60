import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { openConnection } from '../support/http/client-connections.ts'
import { connectHttp2 } from '../support/http/http2.ts'
import { startOtlpCollector } from '../support/http/otlp-collector.ts'
import { startGateway } from '../support/gateway/gateway.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { authorityFile, tlsSettings } from '../support/network/certificates.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

const from = '127.0.0.9'
const handshake =
  'GET /held HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'

/** Each begins a request that the backend does not end, and resolves when its response has begun. */
const requests = [
  {
    name: 'a response over HTTP/1.1',
    env: {},
    begin: async (port: number) => {
      const connection = await openConnection(port, from, 'GET /held HTTP/1.1\r\nHost: a\r\n\r\n')
      await connection.until(/^HTTP\/1\.1 200 /)
    },
  },
  {
    name: 'a response of a worker over TLS',
    env: { ...tlsSettings(), WORKERS: '2' },
    begin: async (port: number) => {
      const ca = readFileSync(authorityFile)
      const request = get({ port, host: 'localhost', path: '/held', localAddress: from, agent: false, ca })
      const [response] = (await once(request, 'response')) as [IncomingMessage]
      response.on('error', () => undefined)
      expect(response.statusCode).toBe(200)
    },
  },
  {
    name: 'a response over HTTP/2',
    env: tlsSettings(),
    begin: async (port: number) => {
      const stream = connectHttp2(port, { localAddress: from }).request({ ':path': '/held' })
      stream.on('error', () => undefined)
      const [head] = (await once(stream, 'response')) as [Record<string, unknown>]
      expect(head[':status']).toBe(200)
    },
  },
  {
    name: 'a WebSocket',
    env: {},
    begin: async (port: number) => {
      const connection = await openConnection(port, from, handshake)
      await connection.until(/^HTTP\/1\.1 101 /)
      connection.socket.on('end', () => connection.socket.end())
    },
  },
]

test.each(requests)(
  '$name that a stop ends frees its place in Redis, and is traced',
  async ({ env, begin }) => {
    const backend = await startBackend((request, response) => {
      response.writeHead(200)
      if (request.headers['x-end'] === undefined) response.write('begins')
      else response.end()
    })
    backend.server.on('upgrade', ({ headers }, socket) => {
      const text = `${headers['sec-websocket-key'] ?? ''}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
      const accept = createHash('sha1').update(text).digest('base64')
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      )
      socket.on('error', () => undefined)
      socket.resume().on('end', () => socket.end())
    })
    const collector = await startOtlpCollector()
    const file = join(makeTemporaryDirectory(), 'sluice.yaml')
    writeFileSync(file, 'limits: [{ name: held, match: GET /held, concurrency: 1 }]\n')
    const shared = { UPSTREAM_URL: backend.url, CONFIG_FILE: file, REDIS_URL: await freshRedis() }
    const [stopped, replica] = await Promise.all([
      startGateway({
        ...shared,
        ...env,
        SHUTDOWN_GRACE: '300ms',
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      }),
      startHosted(shared),
    ])
    const headers = { 'x-end': 'now' }
    await begin(stopped.port)
    expect((await replica.send('GET', '/held', { from, headers })).status).toBe(429)
    expect(await stopped.process.stop()).toBe(0)
    // Redis itself frees the place of a request that is not renewed, 15 seconds after it was last counted.
    await eventually(
      'the place is free',
      async () => expect((await replica.send('GET', '/held', { from, headers })).status).toBe(200),
      { endMs: 5_000 },
    )
    expect(collector.spans.map(({ kind }) => kind)).toContain('server')
  },
)
