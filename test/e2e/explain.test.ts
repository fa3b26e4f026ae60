import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { runHosted } from '../support/gateway/hosted-command.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import { directoryWith } from '../support/gateway/settings.ts'
import { eventually } from '../support/wait/eventually.ts'

const table = `
trustedProxies: [127.0.0.99]
allowList: [{ ip: 127.0.0.98 }]
denyList: [{ ip: 127.0.0.97 }]
limits:
  - { name: login, match: POST /login, requests: 3, window: 15m }
  - name: api
    match: '* /api/*'
    key: header:x-api-key
    requests: 5
    window: 15m
    algorithm: sliding
    overrides: [{ clients: [{ ip: 127.0.0.96 }], requests: 50 }]
  - { name: bucket, match: GET /bucket, requests: 60, window: 15m, algorithm: token-bucket, burst: 2 }
  - { name: watched, match: POST /login, requests: 1, window: 15m, mode: shadow }
  - { name: account, match: POST /session, key: 'body:user.email', requests: 2, window: 15m }
  - { name: chat, match: POST /chat, requests: 100, window: 15m, cost: { reserve: { json: max_tokens, else: 20 }, settle: 'header:x-cost' } }
  - { name: whole, match: POST /whole, requests: 100, window: 15m, cost: { reserve: 'json:max_tokens', settle: 'header:x-cost' } }
`
const token = 'of-the-operators'

async function start(env: Record<string, string> = {}): Promise<HostedGateway> {
  const backend = await startBackend()
  const CONFIG_FILE = join(directoryWith(table), 'sluice.yaml')
  return startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE, ADMIN_TOKEN: token, ...env })
}

type Explained = {
  readonly rules: readonly { readonly name: string; readonly states: readonly object[] }[]
}

const authorized = { authorization: `Bearer ${token}` }

function ask(
  gateway: HostedGateway,
  path: string,
  body: unknown,
  headers: Record<string, string> = authorized,
) {
  return askOperator(gateway, 'POST', path, body, headers)
}

async function explain(gateway: HostedGateway, asked: object): Promise<Explained> {
  const { status, body } = await ask(gateway, '/api/explain', asked)
  expect(status).toBe(200)
  return body as Explained
}

const ruleOf = ({ rules }: Explained, name: string) => rules.find((rule) => rule.name === name)
const statesOf = (explained: Explained, name: string) => ruleOf(explained, name)?.states

let lastClient = 1
const newAddress = (): string => `127.0.0.${++lastClient}`

describe.each(['in memory', 'on Redis', 'with workers', 'with workers on Redis'])('%s', (where) => {
  let gateway: HostedGateway

  beforeAll(async () => {
    gateway = await start({
      ...(where.includes('Redis') && { REDIS_URL: (await startRedisServer()).url, STORE_TIMEOUT: '5s' }),
      ...(where.includes('workers') && { WORKERS: '2' }),
    })
  })

  test('reports the remaining quota and the rule that would refuse, without counting', async () => {
    const from = newAddress()
    const asked = { method: 'POST', target: '/x/../LOGIN?a=b', host: 'app', ip: from }
    for (let remaining = 3; remaining > 0; remaining--) {
      for (let again = 0; again < 2; again++) {
        const explained = await explain(gateway, asked)
        expect(explained).toMatchObject({ outcome: 'limited', path: '/LOGIN', host: 'app', refusedBy: null })
        expect(statesOf(explained, 'login')).toMatchObject([
          { client: { ip: from }, limit: 3, used: 3 - remaining, remaining, source: 'store' },
        ])
      }
      await gateway.send('POST', '/login', { from })
    }
    const explained = await explain(gateway, asked)
    expect(explained).toMatchObject({ outcome: 'limited', refusedBy: 'login', client: { address: from } })
    expect(statesOf(explained, 'login')).toMatchObject([{ remaining: 0, exceeded: true }])
    expect((await gateway.send('POST', '/login', { from })).status).toBe(429)
  })

  test('explain reads a body for rules that count by it', async () => {
    const account = `u${lastClient++}@x`
    const body = JSON.stringify({ user: { email: account } })
    const asked = { method: 'POST', target: '/session', body }
    for (let remaining = 2; remaining > 0; remaining--) {
      const explained = await explain(gateway, asked)
      expect(explained).toMatchObject({ outcome: 'limited', refusedBy: null })
      expect(statesOf(explained, 'account')).toMatchObject([{ limit: 2, remaining }])
      const headers = { 'content-type': 'application/json' }
      await gateway.send('POST', '/session', { from: newAddress(), headers, body })
    }
    expect(await explain(gateway, asked)).toMatchObject({ refusedBy: 'account' })
    const form = { ...asked, body: `user[email]=${account}` }
    expect(await explain(gateway, form)).toMatchObject({ refusedBy: 'account' })
    const headers = { 'Content-Type': 'text/plain' }
    const unread = ruleOf(await explain(gateway, { ...asked, headers }), 'account')
    expect(unread).toMatchObject({ unread: 'type', keys: { length: 2 } })
    expect(JSON.stringify(unread)).not.toContain(account)
  })

  test.each([
    ['/chat', 'application/json', '{"max_tokens": 60}', 'chat', [60]],
    ['/chat', 'application/json', '{}', 'chat', [20]],
    ['/chat', 'application/json', '{"max_tokens": "60"}', 'chat', [100]],
    ['/chat', 'text/plain', '{"max_tokens": 60}', 'chat', [100]],
    ['/chat', 'application/json', undefined, 'chat', [20]],
    ['/whole', 'application/json', undefined, 'whole', [100]],
    ['/session', 'application/json', '[{"user":{"email":"b@x"}},{"user":{"email":"b@x"}}]', 'account', [2]],
  ])('reports the units that a request to %s reserves: %s, %s', async (path, type, body, rule, units) => {
    const from = newAddress()
    const headers = { 'content-type': type, ...(body === undefined && { 'content-length': '0' }) }
    const asked = { method: 'POST', target: path, ip: from, headers, ...(body !== undefined && { body }) }
    await ask(gateway, '/api/clients/reset', { client: { 'body:user.email': 'b@x' } })
    let passed = 0
    // Sends as many requests as the quota allows, and one more.
    for (let status = 200; status === 200 && passed < 10;) {
      const explained = await explain(gateway, asked)
      expect(ruleOf(explained, rule)).toMatchObject({ units })
      status = (await gateway.send('POST', path, { from, headers, ...(body !== undefined && { body }) }))
        .status
      expect(explained).toMatchObject({ refusedBy: status === 200 ? null : rule })
      if (status === 200) passed += 1
    }
    const quota = rule === 'account' ? 2 : 100
    expect(passed).toBe(Math.floor(quota / (units[0] ?? 1)))
  })

  test('explain takes the client from X-Forwarded-For only if a trusted proxy sends it', async () => {
    const client = newAddress()
    const headers = { 'X-Forwarded-For': client, 'X-Api-Key': ['secret'] }
    const trusted = await explain(gateway, { method: 'GET', target: '/api/a', ip: '127.0.0.99', headers })
    expect(trusted).toMatchObject({ client: { address: client, peer: '127.0.0.99' } })
    expect(ruleOf(trusted, 'api')).toMatchObject({ counts: true, keys: [expect.stringMatching(/^h:/)] })
    expect(JSON.stringify(trusted)).not.toContain('secret')
    const other = await explain(gateway, { method: 'GET', target: '/api/a', ip: newAddress(), headers })
    expect(other).not.toMatchObject({ client: { address: client } })
    const twice = await explain(gateway, { method: 'GET', target: '/a', headers: { host: ['a', 'b'] } })
    expect(twice).toMatchObject({ outcome: 'rejected', status: 400, path: null })
  })

  test('explain reports bans, run-time limits, overrides and lists', async () => {
    const from = newAddress()
    const login = { method: 'POST', target: '/login', ip: from }
    await ask(gateway, '/api/clients/override', {
      policy: 'login',
      client: from,
      requests: 9,
      for: '1h',
      label: 'Acme',
    })
    await eventually('the other limit is explained', async () =>
      expect(statesOf(await explain(gateway, login), 'login')).toMatchObject([
        { limit: 9, remaining: 9, label: 'Acme', overrideSeconds: expect.closeTo(3600, -2) as number },
      ]),
    )
    await ask(gateway, '/api/clients/ban', { client: from, for: '1h', reason: 'scraping' })
    await eventually('the ban is explained', async () =>
      expect(await explain(gateway, login)).toMatchObject({
        outcome: 'banned',
        status: 429,
        ban: {
          policy: null,
          by: 'operator',
          reason: 'scraping',
          expiresSeconds: expect.closeTo(3600, -2) as number,
        },
      }),
    )
    // The other worker may learn of the ban a moment later.
    await eventually('the client is over the limit', async () =>
      expect((await gateway.send('POST', '/login', { from })).status).toBe(429),
    )

    const keyed = { method: 'GET', target: '/api/a', headers: { 'x-api-key': 'k' } }
    await ask(gateway, '/api/clients/ban', { policy: 'api', client: 'k', for: '1h' })
    await eventually('the ban of the key is explained', async () =>
      expect(await explain(gateway, { ...keyed, ip: newAddress() })).toMatchObject({
        outcome: 'banned',
        ban: { policy: 'api' },
      }),
    )
    await ask(gateway, '/api/clients/unban', { client: { 'header:x-api-key': 'k' } })
    await eventually('the ban of the key is lifted', async () =>
      expect(await explain(gateway, { ...keyed, ip: newAddress() })).toMatchObject({ outcome: 'limited' }),
    )

    // The other worker may still refuse the request for a moment. Refused requests are not counted.
    const asked = { from: '127.0.0.96', headers: { 'x-api-key': 'k' } }
    await eventually('a request with the key passes', async () =>
      expect((await gateway.send('GET', '/api/a', asked)).status).toBe(200),
    )
    const overridden = await explain(gateway, { ...keyed, ip: '127.0.0.96' })
    expect(ruleOf(overridden, 'api')).toMatchObject({ override: 1, states: [{ limit: 50, used: 1 }] })
    expect(await explain(gateway, { ...login, ip: '127.0.0.97' })).toMatchObject({
      outcome: 'denied',
      status: 403,
    })
    expect(await explain(gateway, { ...login, ip: '127.0.0.98' })).toMatchObject({ outcome: 'forwarded' })
  })

  test('reports the remaining tokens of a bucket', async () => {
    const from = newAddress()
    const asked = { method: 'GET', target: '/bucket', ip: from }
    expect(statesOf(await explain(gateway, asked), 'bucket')).toMatchObject([{ remaining: 2 }])
    await gateway.send('GET', '/bucket', { from })
    expect(statesOf(await explain(gateway, asked), 'bucket')).toMatchObject([{ remaining: 1 }])
    await gateway.send('GET', '/bucket', { from })
    expect(await explain(gateway, asked)).toMatchObject({ refusedBy: 'bucket' })
  })
})

describe('the body of POST /api/explain', () => {
  let gateway: HostedGateway

  beforeAll(async () => {
    gateway = await start()
  })

  const shape = 'The body must be a JSON object with method and target and, optionally, host, ip and headers'
  const ip = 'ip must be the IP address that the connection comes from'
  const headers =
    'headers must be an object of names, each with its value or a list of values, without line ends'

  test.each([
    [{}, shape],
    [[], shape],
    [null, shape],
    ['x', shape],
    [{ method: 'GET' }, shape],
    [{ method: 'GET', target: '' }, shape],
    [{ method: 7, target: '/' }, shape],
    [{ method: 'GET', target: '/', and: 1 }, shape],
    [{ method: 'GET', target: '/\r\nX: y' }, shape],
    [{ method: 'GET\n', target: '/' }, shape],
    [{ method: 'GET', target: '/', host: 'a\0' }, shape],
    [{ method: 'GET', target: '/', host: null }, shape],
    [{ method: 'GET', target: '/', ip: 'localhost' }, ip],
    [{ method: 'GET', target: '/', ip: '' }, ip],
    [{ method: 'GET', target: '/', ip: 1 }, ip],
    [{ method: 'GET', target: '/', headers: ['a: b'] }, headers],
    [{ method: 'GET', target: '/', headers: { a: 1 } }, headers],
    [{ method: 'GET', target: '/', headers: { 'a: b': 'c' } }, headers],
    [{ method: 'GET', target: '/', headers: { '': 'c' } }, headers],
    [{ method: 'GET', target: '/', headers: { a: 'b\r\nc: d' } }, headers],
    [{ method: 'GET', target: '/', headers: { a: ['b', 'c\n'] } }, headers],
    [{ method: 'GET', target: '/', ip: 'x', and: 1 }, shape],
    ['{"method":"GET","target":"/","__proto__":{}}', shape],
  ])('%j is 400: %s', async (body, error) => {
    const sent = body === 'x' ? '"x"' : body
    expect(await ask(gateway, '/api/explain', sent)).toMatchObject({
      status: 400,
      body: { code: 400, error },
    })
  })

  test('an explain request over the size limit is 413, and one without the token is 401', async () => {
    const long = { method: 'GET', target: `/${'a'.repeat(17_000)}` }
    expect((await ask(gateway, '/api/explain', long)).status).toBe(413)
    expect((await ask(gateway, '/api/explain', { method: 'GET', target: '/' }, {})).status).toBe(401)
  })

  test.each([
    [
      { method: 'GE T', target: '/' },
      { outcome: 'rejected', status: 400 },
    ],
    [
      { method: 'GET', target: '/a b' },
      { outcome: 'rejected', status: 400 },
    ],
    [
      { method: 'GET', target: '/%00' },
      { outcome: 'rejected', status: 400 },
    ],
    [
      { method: 'OPTIONS', target: '*' },
      { outcome: 'answered', status: 204 },
    ],
    [
      { method: 'CONNECT', target: 'a:1' },
      { outcome: 'rejected', status: 405 },
    ],
    [
      { method: 'GET', target: '/', headers: { 'content-length': 'x' } },
      { outcome: 'rejected', status: 400 },
    ],
    [{ method: 'GET', target: '/', headers: { 'content-length': '9' } }, { outcome: 'forwarded' }],
  ])('%j is explained', async (asked, expected) => {
    expect(await explain(gateway, asked)).toMatchObject(expected)
  })
})

describe('sluice explain --admin', () => {
  let gateway: HostedGateway

  beforeAll(async () => {
    gateway = await start()
  })

  const sluice = (...args: string[]) =>
    runHosted(['explain', ...args, '--admin', `http://127.0.0.1:${gateway.adminPort}`], {
      ADMIN_TOKEN: token,
    })

  test('sluice explain --admin prints the remaining quota, and is negative if the request would be refused', async () => {
    const from = newAddress()
    const asked = ['POST', '/login', '--ip', from, '--header', 'X-A: b', '-H', 'x-a: c']
    await gateway.send('POST', '/login', { from })
    const one = await sluice(...asked)
    expect(one).toMatchObject({ status: 0, stderr: '' })
    expect(one.stdout).toMatch(/^outcome {2}counts under 2 rules\npath {5}\/login\n/)
    expect(one.stdout).toMatch(/\n {2}2 of 3 left, resets in (15m|14m \d+s)\n/)
    await gateway.send('POST', '/login', { from })
    await gateway.send('POST', '/login', { from })
    const full = await sluice(...asked)
    expect(full.status).toBe(1)
    expect(full.stdout).toMatch(/^outcome {2}refused now by login, counts under 2 rules\n/)
    const { status, stdout } = await sluice(...asked, '--json')
    expect(status).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({ outcome: 'limited', refusedBy: 'login' })
    await ask(gateway, '/api/clients/ban', { client: from, for: '1h', reason: 'scraping' })
    const banned = await sluice(...asked)
    expect(banned.status).toBe(1)
    expect(banned.stdout).toMatch(
      /^outcome {2}answered 429 by the gateway: the client is banned, for \d+(\.\d+)? s: scraping\n/,
    )
  })

  test('sluice explain reads a body from --data', async () => {
    const { status, stdout } = await sluice('POST', '/session', '--data', '{"user":{"email":"a@x"}}')
    expect(status).toBe(0)
    expect(stdout).toMatch(/\n {2}body:user.email sha256:[0-9a-f]{64}\n/)
    const form = await sluice('POST', '/session', '-d', 'x=1')
    expect(form.stdout).toContain('counts by address, as the body does not contain the key')
    const missing = await sluice('POST', '/session', '-d', '@does/not/exist')
    expect(missing).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--data cannot be read') as string,
    })
  })

  test('sluice explain --admin prints the gateway’s error for a wrong question', async () => {
    expect(await sluice('GET', '/', '--ip', 'nowhere')).toMatchObject({
      status: 2,
      stderr: 'error: the gateway answers 400, ip must be the IP address that the connection comes from\n',
    })
    expect(await sluice('GET', '/', '--config', 'x.yaml')).toMatchObject({ status: 2, stdout: '' })
    expect(await sluice('GET', '/', '--header', 'x')).toMatchObject({ status: 2, stdout: '' })
    expect(await sluice('GET', '/\n')).toMatchObject({ status: 2, stdout: '' })
  })
})
