import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { startBackend, startRawBackend } from '../support/http/backend.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { converse } from '../support/http/raw-client.ts'

// A 426 names in `Upgrade` the protocol that the client must use instead (RFC 9110 section 15.5.22).

const refusal =
  'HTTP/1.1 426 Upgrade Required\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nno'

/** Starts a backend that answers each request with these bytes. */
async function backendThatSays(answer: string): Promise<string> {
  const { url } = await startRawBackend((socket) => {
    socket.on('data', () => socket.write(answer))
  })
  return url
}

function get(fields = '', version = '1.1'): string {
  return `GET /chat HTTP/${version}\r\nHost: a\r\n${fields}\r\n`
}

test('a 426 of the backend keeps its Upgrade, and the connection goes on', async () => {
  const gateway = await startHosted({ UPSTREAM_URL: await backendThatSays(refusal) })
  const { responses } = await converse(gateway.port, [get() + get()], { from: '127.0.0.1', responses: 2 })
  expect(responses.map(({ status, body }) => ({ status, body }))).toEqual(
    Array.from({ length: 2 }, () => ({ status: 426, body: 'no' })),
  )
  for (const { head } of responses) {
    expect(head).toMatch(/\r\nupgrade: websocket(\r\n|$)/i)
    expect(head.match(/\r\nconnection: [^\r]*/gi)).toEqual(['\r\nconnection: upgrade'])
  }
})

test('a 426 that ends its connection has both Upgrade and Connection: close', async () => {
  const gateway = await startHosted({ UPSTREAM_URL: await backendThatSays(refusal) })
  const { responses, ended } = await converse(gateway.port, [get('Connection: close\r\n')], {
    from: '127.0.0.1',
    responses: 1,
    then: '',
  })
  expect(responses[0]?.head).toMatch(/\r\nconnection: upgrade, close\r\nupgrade: websocket(\r\n|$)/i)
  expect(ended).toBe('closed')
})

test('a 426 to a WebSocket handshake keeps its Upgrade', async () => {
  const backend = await startBackend()
  backend.server.on('upgrade', (_request, socket) => socket.end(refusal))
  const gateway = await startHosted({ UPSTREAM_URL: backend.url })
  const handshake =
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
  const client = connect(gateway.port, '127.0.0.1')
  let received = ''
  client.on('data', (chunk) => (received += chunk.toString('latin1')))
  client.write(get(handshake))
  await once(client, 'close')
  expect(received).toMatch(
    /^HTTP\/1\.1 426 .*\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n.*no$/is,
  )
})

test.each([
  ['two fields are one list', '426 Upgrade Required', 'Upgrade: TLS/1.2\r\nUpgrade: HTTP/2.0\r\n', '1.1'],
  ['another status has none', '200 OK', 'Upgrade: h2c\r\n', '1.1'],
  ['HTTP/1.0 has none', '426 Upgrade Required', 'Upgrade: h2c\r\n', '1.0'],
])('%s', async (_, status, fields, version) => {
  const answer = `HTTP/1.1 ${status}\r\nConnection: Upgrade\r\n${fields}Content-Length: 2\r\n\r\nno`
  const gateway = await startHosted({ UPSTREAM_URL: await backendThatSays(answer) })
  const { responses } = await converse(gateway.port, [get('', version)], { from: '127.0.0.1', responses: 1 })
  const upgrade = /\r\nupgrade: ([^\r]*)/i.exec(responses[0]?.head ?? '')?.[1]
  expect(upgrade).toBe(fields.startsWith('Upgrade: TLS') ? 'TLS/1.2, HTTP/2.0' : undefined)
})

test('a 426 over HTTP/2 has neither field, as both are forbidden there', async () => {
  const gateway = await startHosted({ UPSTREAM_URL: await backendThatSays(refusal), ...tlsSettings() })
  const session = connectHttp2(gateway.port)
  const { headers } = await sendHttp2(session, { ':path': '/chat' })
  expect(headers[':status']).toBe(426)
  expect(Object.keys(headers)).not.toContain('upgrade')
  session.close()
})
