import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { CLOSED_PORT } from '../support/network/ports.ts'
import { send, sendRaw } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { parseExposition, type Exposition } from '../support/metrics/prometheus.ts'

async function scrape(gateway: HostedGateway): Promise<Exposition> {
  return parseExposition((await send(gateway.adminPort, 'GET', '/metrics')).body)
}

async function readiness(gateway: HostedGateway): Promise<unknown> {
  return JSON.parse((await send(gateway.adminPort, 'GET', '/readyz')).body)
}

test('requests, decisions and the backend are counted on the way through', async () => {
  const backend = await startBackend((_, response) => response.end('ok'))
  const gateway = await startHosted({ UPSTREAM_URL: backend.url })
  for (let count = 0; count < 7; count++) await gateway.send('POST', '/forgot-password')
  await gateway.send('GET', '/free')
  await gateway.send('GET', '/a%00b')

  const found = await scrape(gateway)
  expect(found.value('sluice_requests_total', { class: '2xx' })).toBe(6)
  expect(found.value('sluice_requests_total', { class: '4xx' })).toBe(3)
  expect(found.value('sluice_rejected_requests_total', { reason: 'target' })).toBe(1)
  expect(found.value('sluice_request_duration_seconds_count')).toBe(9)
  expect(found.value('sluice_upstream_duration_seconds_count', { upstream: 'default' })).toBe(6)
  const policy = 'forgot-password'
  expect(found.value('sluice_decisions_total', { policy, outcome: 'allowed' })).toBe(5)
  expect(found.value('sluice_decisions_total', { policy, outcome: 'refused' })).toBe(2)
  expect(found.value('sluice_decisions_total', { policy: 'login', outcome: 'allowed' })).toBe(0)
  expect(found.value('sluice_limited_requests_total', { policy, outcome: 'within' })).toBe(4)
  expect(found.value('sluice_limited_requests_total', { policy, outcome: 'near' })).toBe(1)
  expect(found.value('sluice_limited_requests_total', { policy, outcome: 'over' })).toBe(2)
  expect(found.value('sluice_table_entries', { table: 'counters' })).toBe(1)
  expect(found.value('sluice_table_capacity', { table: 'counters' })).toBeGreaterThan(1000)
  expect(await readiness(gateway)).toEqual({
    status: 'ready',
    store: 'memory',
    upstream: 'available',
    servers: { available: 1, ejected: 0, unhealthy: 0 },
  })
})

test('an unavailable backend is in the metrics and in /readyz, which stays 200', async () => {
  const gateway = await startHosted({ UPSTREAM_URL: `http://127.0.0.1:${CLOSED_PORT}` })
  expect((await gateway.send('GET', '/')).status).toBe(502)
  const found = await scrape(gateway)
  expect(found.value('sluice_upstream_errors_total', { upstream: 'default', kind: 'refused' })).toBe(1)
  expect(found.value('sluice_requests_total', { class: '5xx' })).toBe(1)
  expect(await readiness(gateway)).toMatchObject({ status: 'ready', upstream: 'unavailable' })
})

test('the metrics of several workers are combined', async () => {
  const backend = await startBackend((_, response) => response.end('ok'))
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, WORKERS: '2' })
  await Promise.all(Array.from({ length: 40 }, () => gateway.send('POST', '/login')))
  const found = await scrape(gateway)
  expect(found.value('sluice_requests_total', { class: '2xx' })).toBe(30)
  expect(found.value('sluice_requests_total', { class: '4xx' })).toBe(10)
  expect(found.value('sluice_decisions_total', { policy: 'login', outcome: 'refused' })).toBe(10)
  expect(found.value('sluice_table_entries', { table: 'counters' })).toBe(1)
  expect(found.value('sluice_processes')).toBe(3)
  expect(await readiness(gateway)).toEqual({
    status: 'ready',
    store: 'memory',
    upstream: 'available',
    servers: { available: 1, ejected: 0, unhealthy: 0 },
  })
})

/**
 * The attack: a client's input ends up in labels, where it fills the memory of the gateway and of Prometheus, forges lines of the
 * exposition, or reveals secrets to everybody who may see graphs. Here every value that a client can choose contains a mark.
 */
test('the metrics contain nothing that clients send, and no more series for it', async () => {
  const backend = await startBackend((_, response) => response.end('ok'))
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, TRUSTED_PROXIES: '127.0.0.1' })
  await gateway.send('POST', '/login')
  const before = await scrape(gateway)

  const mark = 'Mark7fd1'
  const head = `Host: ${mark}.example\r\nConnection: close\r\n`
  for (let round = 0; round < 10; round++) {
    const own = `${mark}${round}`
    await gateway.send('POST', `/login/${own}?${own}=${own}`, { headers: { 'x-api-key': own } })
    await gateway.send('POST', '/login', {
      headers: { [own]: own, host: own, cookie: own, 'user-agent': own, 'x-request-id': own },
      body: own,
    })
    await gateway.send('POST', '/login', { headers: { 'x-forwarded-for': `198.51.100.${round}` } })
    await gateway.send('POST', '/signup', { from: `127.66.7.${round + 1}` })
    await sendRaw(gateway.port, `${own} / HTTP/1.1\r\n${head}\r\n`)
    await sendRaw(gateway.port, `GET /${own}"} 1\\n HTTP/1.1\r\n${head}\r\n`)
    await sendRaw(gateway.port, `GET / HTTP/1.1\r\n${head}Transfer-Encoding: ${own}\r\n\r\n`)
    await sendRaw(gateway.port, `GET http://${own}/ HTTP/1.1\r\n${head}\r\n`)
    await sendRaw(gateway.port, `GET / HTTP/1.1\r\n${head}Upgrade: ${own}\r\n\r\n`)
  }

  const { body } = await send(gateway.adminPort, 'GET', '/metrics')
  for (const sent of [mark, mark.toLowerCase(), '198.51.100.', '127.66.7.', '127.0.0.1']) {
    expect(body).not.toContain(sent)
  }
  const ours = (found: Exposition): number =>
    found.samples.filter(({ name }) => !/^(sluice_)?nodejs_/.test(name)).length
  expect(ours(parseExposition(body))).toBe(ours(before))
})
