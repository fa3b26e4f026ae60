import { once } from 'node:events'
import { connect } from 'node:net'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { sendRaw } from '../support/gateway/gateway.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { startOrigin } from '../support/gateway/origin.ts'
import { eventually } from '../support/wait/eventually.ts'

// Errors of every listener have one shape, including errors before routing: for malformed requests, and for CONNECT.

const ports = new Map<string, number>()

beforeAll(async () => {
  const [gateway, origin] = await Promise.all([
    startHosted({ UPSTREAM_URL: 'http://127.0.0.1:9' }),
    startOrigin(),
  ])
  ports.set('clients', gateway.port).set('operators', gateway.adminPort).set('origin', origin.port)
})

const requests: readonly (readonly [string, number, readonly string[]])[] = [
  ['no HTTP', 400, ['hello']],
  ['a TLS handshake', 400, ['\x16\x03\x01\x02\x00']],
  ['an unknown method', 400, ['FOO /livez HTTP/1.1', 'host: localhost']],
  ['no host', 400, ['GET /livez HTTP/1.1']],
  ['two hosts', 400, ['GET /livez HTTP/1.1', 'host: localhost', 'host: example.com']],
  [
    'a length and chunks',
    400,
    ['POST /a HTTP/1.1', 'host: a', 'content-length: 1', 'transfer-encoding: chunked'],
  ],
  ['CONNECT', 405, ['CONNECT a:1 HTTP/1.1', 'host: a:1']],
  ['CONNECT of a path', 405, ['CONNECT / HTTP/1.1', 'host: localhost']],
  ['an unknown expectation', 417, ['GET /livez HTTP/1.1', 'host: localhost', 'expect: cake']],
  ['a long head', 431, ['GET /livez HTTP/1.1', 'host: localhost', `x: ${'x'.repeat(40_000)}`]],
]

test.each(['clients', 'operators', 'origin'])('the listener for %s', async (listener) => {
  for (const [name, code, lines] of requests) {
    const text = await sendRaw(ports.get(listener) ?? 0, [...lines, 'connection: close', '', ''].join('\r\n'))
    const [head = '', body = ''] = text.split('\r\n\r\n')
    expect([name, head.split(' ', 2)[1]]).toEqual([name, String(code)])
    expect(head.toLowerCase(), name).toContain('\r\ncontent-type: application/json\r\n')
    expect(JSON.parse(body), name).toEqual({ code, error: expect.stringMatching(/./) as string })
    if (code === 405) expect(head.toLowerCase(), name).toMatch(/\r\nallow: get, head,/)
  }
})

test.each([
  ['no HTTP', 'hello\r\n\r\n'],
  ['a request and no HTTP', 'GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\nhello\r\n\r\n'],
  ['CONNECT', 'CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n'],
])('a stream of events that %s follows has no error in its content', async (_, bytes) => {
  const socket = connect(ports.get('operators') ?? 0, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let received = ''
  socket.on('data', (chunk) => (received += chunk.toString('latin1')))
  socket.on('error', () => undefined)
  socket.write('GET /api/events HTTP/1.1\r\nhost: localhost\r\n\r\n')
  await eventually('the stream has begun', () => expect(received).toContain('event: '))
  socket.write(bytes)
  await once(socket, 'close')
  expect(received.match(/HTTP\/1\.1 \d+|"error"/g)).toEqual(['HTTP/1.1 200'])
})
