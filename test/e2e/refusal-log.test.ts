import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { send } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

const limits = `
accessLog: refused
limits:
  - { name: login, match: POST /login, requests: 1, window: 1h, refusal: { status: 503 } }
  - { name: dry, match: GET /dry, requests: 1, window: 1h, mode: shadow }
  - { name: closed, match: GET /closed, requests: 1, window: 1h, onStoreError: closed }
  - { name: key, match: GET /key/*, key: 'header:x-api-key', requests: 1, window: 1h, ban: { after: 3, for: 2h } }
  - { name: tried, match: GET /tried, key: 'header:x-api-key', requests: 1, window: 1h, mode: shadow }
  - { name: pair, match: GET /pair/*, key: [ip, host], requests: 1, window: 1h, ban: { after: 3, for: 2h } }
  - { name: either, match: GET /either, key: { first: ['header:x-api-key', ip] }, requests: 1, window: 1h }
`

type Line = Record<string, unknown>

function linesOf(gateway: HostedGateway, message: string): Line[] {
  const lines = gateway
    .output()
    .split('\n')
    .filter((line) => line.includes(`"msg":"${message}"`))
  return lines.map((line) => JSON.parse(line) as Line)
}

async function startWith(env: Record<string, string> = {}): Promise<HostedGateway> {
  const backend = await startBackend()
  return startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE: writeConfigFile(limits), ...env })
}

test('a line for each refused request, and for no other', async () => {
  const gateway = await startWith()
  for (const path of ['/free', '/dry', '/dry', '/%zz']) await gateway.send('GET', path)
  await gateway.send('POST', '/login')
  const { headers } = await gateway.send('POST', '/x/../login?password=secret', { from: '127.0.0.1' })
  await eventually('the refusal is in the log', () =>
    expect(linesOf(gateway, 'request refused')).toHaveLength(1),
  )
  expect(linesOf(gateway, 'request refused')[0]).toMatchObject({
    requestId: headers['x-request-id'],
    method: 'POST',
    path: '/login',
    client: '127.0.0.1',
    status: 503,
    policy: 'login',
  })
  expect(gateway.output()).not.toContain('secret')
})

/** The ids, in the operator's list, of the clients that are over the limit of a rule. */
async function limitedBy(gateway: HostedGateway, rule: string): Promise<unknown[]> {
  const { body } = await send(gateway.adminPort, 'GET', `/api/clients/limited?policy=${rule}`)
  const { clients } = JSON.parse(body) as { clients: { client: { id?: string } }[] }
  return clients.map(({ client }) => client.id)
}

test('the line of a rule by API key names the client as operators do, without its key, banned or not', async () => {
  const gateway = await startWith({ LOG_ADDRESSES: '0' })
  const key = 'the-key-of-acme'
  const ask = async (path: string) => gateway.send('GET', path, { headers: { 'x-api-key': key } })
  for (let sent = 0; sent < 4; sent++) await ask('/key/a')
  const [id] = await limitedBy(gateway, 'key')
  expect(id).toMatch(/^h:/)
  await eventually('the client is banned', async () =>
    expect(Number((await ask('/key/a')).headers['retry-after'])).toBeGreaterThan(3600),
  )
  await ask('/key/banned')
  await eventually('the refusal of the banned client is in the log', () => {
    const lines = linesOf(gateway, 'request refused')
    expect(lines.map(({ path }) => path)).toContain('/key/banned')
    for (const line of lines) expect(line).toMatchObject({ policy: 'key', counter: id })
  })
  expect(gateway.output()).not.toContain(key)
})

test.each([
  ['0', false],
  ['1', true],
])('with LOG_ADDRESSES=%s a hash of an address is in the lines: %s', async (LOG_ADDRESSES, isThere) => {
  const gateway = await startWith({ LOG_ADDRESSES })
  for (let sent = 0; sent < 4; sent++) await gateway.send('GET', '/pair/a')
  const [id] = await limitedBy(gateway, 'pair')
  await gateway.waitForLine(/"msg":"client banned"/)
  await gateway.send('GET', '/pair/banned')
  await eventually('the refusal of the banned client is in the log', () =>
    expect(linesOf(gateway, 'request refused').map(({ path }) => path)).toContain('/pair/banned'),
  )
  const [ban] = linesOf(gateway, 'client banned')
  expect(ban).toMatchObject({ policy: 'pair' })
  const named = [ban?.['client'], ...linesOf(gateway, 'request refused').map(({ counter }) => counter)]
  for (const name of named) expect(name).toBe(isThere ? id : undefined)
})

test('a refusal line has no hashed key if the client counts by address, by any kind of key', async () => {
  const gateway = await startWith()
  for (let sent = 0; sent < 2; sent++) await gateway.send('GET', '/either')
  for (let sent = 0; sent < 2; sent++)
    await gateway.send('GET', '/either', { headers: { 'x-api-key': 'of-globex' } })
  await eventually('both refusals are in the log', () =>
    expect(linesOf(gateway, 'request refused')).toHaveLength(2),
  )
  const [byAddress, byKey] = linesOf(gateway, 'request refused')
  expect(byAddress).not.toHaveProperty('counter')
  expect(await limitedBy(gateway, 'either')).toContain(byKey?.['counter'])
})

test('an access line names whom a rule in shadow mode would have refused', async () => {
  const gateway = await startWith({ ACCESS_LOG: '1' })
  for (let sent = 0; sent < 2; sent++)
    await gateway.send('GET', '/tried', { headers: { 'x-api-key': 'of-initech' } })
  const [line] = await gateway.waitForLine(/^.*"wouldBeRefusedBy".*$/)
  const [counter] = await limitedBy(gateway, 'tried')
  expect(JSON.parse(line)).toMatchObject({ wouldBeRefusedBy: ['tried'], counter })
  expect(linesOf(gateway, 'request').filter((each) => 'counter' in each)).toHaveLength(1)
})

test('refusals over HTTP/2 are logged, without addresses if so configured', async () => {
  const gateway = await startWith({ LOG_ADDRESSES: '0', ...tlsSettings() })
  const session = connectHttp2(gateway.port)
  const login = () => sendHttp2(session, { ':method': 'POST', ':path': '/login' }, '')
  await login()
  const { headers } = await login()
  await eventually('the refusal is in the log', () =>
    expect(linesOf(gateway, 'request refused')).toHaveLength(1),
  )
  const [line] = linesOf(gateway, 'request refused')
  expect(line).toMatchObject({ requestId: headers['x-request-id'], policy: 'login' })
  expect(line).not.toHaveProperty('client')
})

test('a request refused during a Redis outage names no rule', async () => {
  const gateway = await startWith({ REDIS_URL: 'redis://127.0.0.1:1', STORE_TIMEOUT: '50ms' })
  expect((await gateway.send('GET', '/closed')).status).toBe(503)
  await eventually('the refusal is in the log', () =>
    expect(linesOf(gateway, 'request refused')).toHaveLength(1),
  )
  const [line] = linesOf(gateway, 'request refused')
  expect(line).toMatchObject({ path: '/closed', status: 503 })
  expect(line).not.toHaveProperty('policy')
})

test('lines of a flood are suppressed and counted', async () => {
  const gateway = await startWith()
  await gateway.send('POST', '/login')
  await Promise.all(Array.from({ length: 600 }, () => gateway.send('POST', '/login')))
  const leftOut = (): number =>
    linesOf(gateway, 'refusal log lines suppressed').reduce((sum, line) => sum + Number(line['leftOut']), 0)
  // Each refusal has a line or is counted, no matter how long the machine took.
  await eventually('each refusal is in the log or counted there', () =>
    expect(linesOf(gateway, 'request refused').length + leftOut()).toBe(600),
  )
})

test('with access lines for all requests, refused ones have no refusal line', async () => {
  const gateway = await startWith({ ACCESS_LOG: '1' })
  for (let sent = 0; sent < 2; sent++) await gateway.send('POST', '/login')
  await gateway.waitForLine(/"refusedBy":"login"/)
  expect(linesOf(gateway, 'request refused')).toEqual([])
})
