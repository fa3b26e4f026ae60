import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { Agent, request as httpRequest, type ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { openConnections, type ClientConnection } from '../support/http/client-connections.ts'
import { send, startGateway } from '../support/gateway/gateway.ts'
import { commandOf, spawnCommand } from '../support/gateway/process.ts'
import {
  connectRawHttp2,
  endHeaders,
  endStream,
  frame,
  frameTypes,
  requestFields,
} from '../support/http/raw-http2.ts'
import { eventually } from '../support/wait/eventually.ts'

/** Sends a request over a keep-alive connection. */
function sendOver(agent: Agent, port: number, method: string, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ port, host: '127.0.0.1', method, path, agent }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
    })
    request.on('error', reject)
    request.end()
  })
}

test('a request without a free file descriptor for the backend is a 503, and not a failure of the backend', async () => {
  const backend = await startBackend()
  const gateway = await startGateway({ UPSTREAM_URL: backend.url })
  const clients = new Agent({ keepAlive: true })
  const admins = new Agent({ keepAlive: true })
  expect(await sendOver(clients, gateway.port, 'OPTIONS', '*')).toBe(204)
  expect(await sendOver(admins, gateway.adminPort, 'GET', '/metrics')).toBe(200)
  const setLimit = (files: number): void =>
    void execFileSync('prlimit', [`--pid=${gateway.process.child.pid ?? 0}`, `--nofile=${files}:`])
  setLimit(3)
  for (let sent = 0; sent < 20; sent++) expect(await sendOver(clients, gateway.port, 'GET', '/')).toBe(503)
  expect(await sendOver(admins, gateway.adminPort, 'GET', '/livez')).toBe(200)
  setLimit(1_000)
  expect(await sendOver(clients, gateway.port, 'GET', '/')).toBe(200)
  clients.destroy()
  admins.destroy()

  const output = gateway.process.output()
  expect(output.match(/the backend failed|"the backend|ECONNREFUSED/g)).toBeNull()
  expect(output.match(/too many open files in this process \(EMFILE\)/g)).toHaveLength(1)
  const { body } = await send(gateway.adminPort, 'GET', '/readyz')
  expect(JSON.parse(body)).toMatchObject({ upstream: 'available' })
  const metrics = await send(gateway.adminPort, 'GET', '/metrics')
  expect(metrics.body).toMatch(/^sluice_upstream_errors_total{upstream="default",kind="refused"} 0$/m)
  expect(metrics.body).toMatch(/^sluice_upstream_errors_total{upstream="default",kind="busy"} 20$/m)
})

test('an HTTP/2 connection that is closed to make room for another frees its file, although its client ignores that', async () => {
  const backend = await startBackend()
  const gateway = await startGateway({ UPSTREAM_URL: backend.url, MAX_CONNECTIONS: '10' })
  const opened = []
  for (let i = 0; i < 200; i++) {
    const raw = await connectRawHttp2(gateway.port, { cleartext: true, hangsUp: false })
    raw.send(frame(frameTypes.headers, endHeaders | endStream, 1, requestFields('GET', '/')))
    await raw.waitFor(({ type, stream }) => type === frameTypes.headers && stream === 1)
    opened.push(raw)
  }
  const files = readdirSync(`/proc/${gateway.process.child.pid}/fd`).length
  for (const { socket } of opened) socket.destroy()
  expect(files).toBeLessThan(100)
})

describe('a limit of 256 open files', () => {
  const request = 'GET /held HTTP/1.1\r\nHost: a\r\n\r\n'

  test('a limit of 256 open files is logged at start, and a thousand connections leave some for /livez and the backend', async () => {
    const held: ServerResponse[] = []
    const backend = await startBackend((request, response) => {
      if (request.url === '/held') held.push(response)
      else response.end('ok')
    })
    const env = {
      UPSTREAM_URL: backend.url,
      ...{ HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0', CONFIG_FILE: 'test/support/gateway/defaults.yaml' },
    }
    const { args, env: compiled } = commandOf('proxy/main.ts')
    const command = ['--nofile=256:256', process.execPath, ...args]
    const gateway = spawnCommand('prlimit', { ...compiled, ...env }, command)
    const [line] = await gateway.waitForLine(/^.*"msg":"listening".*$/)
    const { port, adminPort } = JSON.parse(line) as { port: number; adminPort: number }
    expect(gateway.stdout()).toMatch(
      /"level":"warn".*the limit of open files is 256 \(ulimit -n\) and the settings can need \d{5}: using MAX_CONNECTIONS=79, UPSTREAM_CONNECTIONS=44, UPSTREAM_STREAMS=53\./,
    )

    // Connections of many clients, each with a request in flight or without any request so far.
    const attackers: ClientConnection[] = []
    for (let from = 2; from < 42; from++) {
      const sent = from % 2 === 0 ? request : ''
      attackers.push(...(await openConnections(25, port, `127.0.0.${from}`, sent)))
      expect((await send(adminPort, 'GET', '/livez')).status).toBe(200)
    }
    const { body } = await send(adminPort, 'GET', '/metrics')
    expect(Number(/^sluice_process_open_fds (\d+)$/m.exec(body)?.[1])).toBeLessThan(230)
    for (const response of held) response.end('done')
    for (const { socket } of attackers) socket.destroy()
    await eventually('a request is served again', async () =>
      expect((await send(port, 'GET', '/')).status).toBe(200),
    )
    expect(gateway.output()).not.toMatch(/the backend failed|EMFILE|"level":"error"/)
  })
})
