import { execFileSync } from 'node:child_process'
import { Agent, request as httpRequest } from 'node:http'
import { expect, test } from 'vitest'
import { startBackend } from '../support/backend.ts'
import { send, startGateway } from '../support/gateway.ts'

/** One request over a connection that is kept. */
function sendOver(agent: Agent, port: number, method: string, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ port, host: '127.0.0.1', method, path, agent }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
    })
    request.on('error', reject)
    request.end()
  })
}

test('where no file is left for a connection to the backend, that is 503 and not the fault of the backend', async () => {
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
  expect(output.match(/"the backend|ECONNREFUSED/g)).toBeNull()
  expect(output.match(/the limit of open files of this process is reached \(EMFILE\)/g)).toHaveLength(1)
  const { body } = await send(gateway.adminPort, 'GET', '/readyz')
  expect(JSON.parse(body)).toMatchObject({ upstream: 'answering' })
  const metrics = await send(gateway.adminPort, 'GET', '/metrics')
  expect(metrics.body).toMatch(/^sluice_upstream_errors_total{kind="refused"} 0$/m)
  expect(metrics.body).toMatch(/^sluice_upstream_errors_total{kind="busy"} 20$/m)
})
