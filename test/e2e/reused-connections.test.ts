import type { Http2Session } from 'node:http2'
import { expect, test } from 'vitest'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { startRawBackend } from '../support/http/backend.ts'
import { startHttp2Backend } from '../support/http/http2-backend.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

// Each server answers one request on a connection, and ends the connection without an answer to the second.

async function startHttp1Server(): Promise<string> {
  const { url } = await startRawBackend((socket) => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      socket.once('data', () => socket.resetAndDestroy())
    })
  })
  return url
}

async function startHttp2Server(): Promise<string> {
  const used = new WeakSet<Http2Session>()
  const { url } = await startHttp2Backend((stream) => {
    const { session } = stream
    if (!session || used.has(session)) return session?.destroy()
    used.add(session)
    stream.respond({ ':status': 200 })
    stream.end('ok')
  })
  return url
}

test.each([
  ['HTTP/1.1', 1, startHttp1Server],
  ['HTTP/1.1', 3, startHttp1Server],
  ['h2c', 1, startHttp2Server],
  ['h2c', 3, startHttp2Server],
])(
  'GETs on reused connections that the server closes get a new one, over %s, with %i servers',
  async (_, count, start) => {
    const urls = await Promise.all(Array.from({ length: count }, start))
    const gateway = await startHosted({
      CONFIG_FILE: writeConfigFile(`routes: [{ name: r, upstream: [${urls.join(', ')}] }]\n`),
      RATE_LIMITING_DISABLED: '1',
    })
    const statuses: number[] = []
    for (let i = 0; i < 12; i++) statuses.push((await gateway.send('GET', '/')).status)
    expect(statuses).toEqual(Array.from({ length: 12 }, () => 200))
  },
)
