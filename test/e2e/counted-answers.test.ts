import { once } from 'node:events'
import { connect } from 'node:net'
import { beforeAll, describe, expect, test } from 'vitest'
import { startRawBackend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

const handshake =
  'GET /api/chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
const accept = 'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo='
const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: '

let gateway: HostedGateway

beforeAll(async () => {
  const backend = await startRawBackend((socket) => {
    socket.once('data', (head) => {
      const text = head.toString('latin1')
      if (text.startsWith('GET /api/chat ')) socket.write(`${switching}websocket\r\n${accept}\r\n\r\n`)
      else if (text.startsWith('GET /api/unasked ')) socket.write(`${switching}another\r\n\r\n`)
      else if (text.startsWith('GET /api/broken ')) socket.end('nonsense\r\n\r\n')
    })
  })
  gateway = await startHosted({
    UPSTREAM_URL: backend.url,
    CONFIG_FILE: writeConfigFile("limits: [{ name: api, match: '* /api/*', requests: 100, window: 1m }]"),
    MAX_BODY_SIZE: '1000',
    BODY_TIMEOUT: '300ms',
  })
})

/** The first bytes of the response, including its head. */
async function ask(bytes: string): Promise<string> {
  const socket = connect(gateway.port, '127.0.0.1')
  socket.write(bytes)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  return answer.toString('latin1')
}

const post = 'POST /api/upload HTTP/1.1\r\nHost: a\r\n'

describe('every response to a counted request has the headers of its rules', () => {
  test.each([
    ['a WebSocket that is taken up', 101, handshake],
    ['an upgrade that nobody has asked for', 502, 'GET /api/unasked HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['nonsense from the backend', 502, 'GET /api/broken HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a body declared too large', 413, `${post}Content-Length: 1001\r\n\r\n`],
    [
      'a body that becomes too large',
      413,
      `${post}Transfer-Encoding: chunked\r\n\r\n3e9\r\n${'x'.repeat(1001)}`,
    ],
    ['a body that does not come', 408, `${post}Content-Length: 10\r\n\r\n`],
  ])('%s: %i', async (_, status, bytes) => {
    const answer = await ask(bytes)
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(answer).toMatch(/\r\nratelimit-policy: "api";q=100;w=60\r\nratelimit: "api";r=\d+;t=\d+\r\n/)
  })

  test('responses to uncounted requests have no headers of rules', async () => {
    expect(await ask('POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n')).not.toMatch(
      /ratelimit/,
    )
  })
})
