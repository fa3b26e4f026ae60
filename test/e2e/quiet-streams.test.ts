import { expect, test } from 'vitest'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { startBackend } from '../support/http/backend.ts'
import { startHttp2Backend } from '../support/http/http2-backend.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

// The gateway ends an event stream that is silent for UPSTREAM_IDLE_TIMEOUT. Any client can open such a stream. If its end counted as a
// failure of the server, three clients could make a healthy server unavailable to everybody.

const STREAMS = 12
const eventStream = { 'content-type': 'text/event-stream' }

const backends: Readonly<Record<string, () => Promise<{ url: string }>>> = {
  'HTTP/1.1': () =>
    startBackend((request, response) => {
      if (request.url !== '/events') return response.end('ok')
      return response.writeHead(200, eventStream).write('data: hello\n\n')
    }),
  'HTTP/1.1, with a length': () =>
    startBackend((request, response) => {
      if (request.url !== '/events') return response.end('ok')
      return response.writeHead(200, { ...eventStream, 'content-length': 1_000 }).write('data: hello\n\n')
    }),
  'HTTP/2': () =>
    startHttp2Backend((stream, headers) => {
      stream.respond({ ':status': 200, ...eventStream })
      if (headers[':path'] === '/events') stream.write('data: hello\n\n')
      else stream.end('ok')
    }),
}

for (const [protocol, start] of Object.entries(backends))
  test(`quiet event streams that end by UPSTREAM_IDLE_TIMEOUT eject no server: ${protocol}`, async () => {
    const servers = await Promise.all([start(), start()])
    const gateway = await startHosted({
      CONFIG_FILE: writeConfigFile(
        `routes: [{ name: r, upstream: [${servers.map(({ url }) => url).join(', ')}] }]`,
      ),
      RATE_LIMITING_DISABLED: '1',
      UPSTREAM_IDLE_TIMEOUT: '100ms',
    })
    const session = connectHttp2(gateway.port, { cleartext: true })
    const ends = Array.from({ length: STREAMS }, async (_, i) => {
      if (i % 2 === 0) {
        const { resetCode, status } = await sendHttp2(session, { ':path': '/events' })
        return [status, resetCode !== 0]
      }
      const response = await fetch(`http://127.0.0.1:${gateway.port}/events`)
      const isCut = await response.text().then(
        () => false,
        () => true,
      )
      return [response.status, isCut]
    })
    // Each response has begun, and does not look complete.
    expect(await Promise.all(ends)).toEqual(Array(STREAMS).fill([200, true]))
    const metrics = await (await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`)).text()
    const told = metrics.split('\n').filter((line) => /^sluice_upstream_(errors|servers).*[^0]$/.test(line))
    expect(told).toEqual([
      `sluice_upstream_errors_total{upstream="r",kind="timeout"} ${STREAMS}`,
      'sluice_upstream_servers{upstream="r",state="available"} 2',
    ])
    const statuses = await Promise.all(
      Array.from({ length: 8 }, async () => (await gateway.send('GET', '/')).status),
    )
    expect(statuses).toEqual(Array(8).fill(200))
  })
