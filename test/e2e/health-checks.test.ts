import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { startBackend, type Backend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'
import { passes } from '../support/wait/passes.ts'

/** A server whose health the test sets, and which serves requests in either state. */
async function startServer(
  name: string,
): Promise<Backend & { isHealthy: boolean; readonly requests: () => number }> {
  const backend = await startBackend((request, response) => {
    if (request.url === '/healthz' && !server.isHealthy) response.writeHead(503)
    response.end(name)
  })
  const requests = (): number => backend.seen.filter(({ url }) => url !== '/healthz').length
  const server = { ...backend, isHealthy: true, requests }
  return server
}

// A probe may take as long as the interval between probes, long enough not to fail on a busy machine.
const health = 'health: { path: /healthz, every: 1s, fails: 2, passes: 2 }'

async function start(...servers: readonly Backend[]): Promise<HostedGateway> {
  const urls = servers.map(({ url }) => `${url}/base`).join(', ')
  return startHosted({
    CONFIG_FILE: writeConfigFile(`routes: [{ name: r, upstream: [${urls}], ${health} }]`),
    RATE_LIMITING_DISABLED: '1',
  })
}

async function ask({ send }: HostedGateway, requests: number): Promise<void> {
  for (let i = 0; i < requests; i++) expect((await send('GET', `/${i}`)).status).toBe(200)
}

const metricsOf = async ({ adminPort }: HostedGateway): Promise<string> =>
  (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()

test('a server that fails its health check gets no requests until it passes again', async () => {
  const [sick, well] = await Promise.all([startServer('sick'), startServer('well')])
  const gateway = await start(sick, well)
  await ask(gateway, 4)
  expect(sick.requests()).toBe(2)
  sick.isHealthy = false
  await gateway.waitForLine(/"level":"warn".*"upstream":"r".*"reason":"it answers 503".*"server is unhealthy/)
  const before = sick.requests()
  await ask(gateway, 10)
  expect(sick.requests()).toBe(before)
  const metrics = await metricsOf(gateway)
  expect(metrics).toContain('sluice_upstream_servers{upstream="r",state="unhealthy"} 1')
  expect(metrics).toContain('sluice_upstream_servers{upstream="r",state="available"} 1')
  const servers = { available: 1, ejected: 0, unhealthy: 1 }
  const status = (await askOperator(gateway, 'GET', '/api/status')).body
  expect(status).toMatchObject({
    servers,
    listedServers: [
      { upstream: 'r', url: sick.url, state: 'unhealthy' },
      { upstream: 'r', url: well.url, state: 'available' },
    ],
  })
  const ready = (await askOperator(gateway, 'GET', '/readyz')).body
  expect(ready).toEqual({ status: 'ready', store: 'memory', upstream: 'available', servers })
  expect(metrics).toMatch(/sluice_upstream_probes_total\{upstream="r",outcome="failed"\} ([2-9]|\d\d+)$/m)
  sick.isHealthy = true
  await gateway.waitForLine(/"level":"info".*"upstream":"r".*"server is available again"/)
  await ask(gateway, 4)
  expect(sick.requests()).toBe(before + 2)
})

test('if no server is healthy, all are used', async () => {
  const servers = await Promise.all([startServer('a'), startServer('b')])
  for (const server of servers) server.isHealthy = false
  const gateway = await start(...servers)
  await eventually('both servers count as unhealthy', async () =>
    expect(await metricsOf(gateway)).toContain('{upstream="r",state="unhealthy"} 2'),
  )
  await ask(gateway, 4)
  expect(servers.map(({ requests }) => requests())).toEqual([2, 2])
})

test('a route that a reload takes away is not probed any more', async () => {
  const server = await startServer('a')
  const file = writeConfigFile(`routes: [{ name: r, upstream: ${server.url}, ${health} }]`)
  const gateway = await startHosted({ CONFIG_FILE: file })
  await eventually('the server has been asked twice', () => expect(server.seen.length).toBeGreaterThan(1))
  writeFileSync(file, `upstream: ${server.url}\n`)
  await askOperator(gateway, 'POST', '/api/reload', {})
  await eventually('it is not asked any more', async () => {
    const before = server.seen.length
    await passes(1_500)
    expect(server.seen.length).toBe(before)
  })
})
