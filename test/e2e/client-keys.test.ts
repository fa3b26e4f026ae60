import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { send, type SendOptions } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { freshRedis } from '../support/redis/redis.ts'

const jwtOf = (sub: string): string =>
  [{ alg: 'RS256' }, { sub }].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')

let lastClient = 1
const newAddress = (): string => `127.0.0.${++lastClient}`

describe.each<[string, () => Promise<Record<string, string>>]>([
  ['in memory', () => Promise.resolve({})],
  ['in Redis', async () => ({ REDIS_URL: await freshRedis() })],
  ['of two workers', () => Promise.resolve({ WORKERS: '2' })],
])('the key of a rule identifies a client, with counters %s', (_, store) => {
  let gateway: HostedGateway

  beforeAll(async () => {
    const { url } = await startBackend()
    const CONFIG_FILE = join(import.meta.dirname, 'client-keys.yaml')
    gateway = await startHosted({ UPSTREAM_URL: url, CONFIG_FILE, ...(await store()) })
  })

  const statusOf = async (path: string, options: SendOptions = {}): Promise<number> =>
    (await gateway.send('GET', path, options)).status
  const inspect = async (policy: string, client: unknown): Promise<unknown> =>
    (await askOperator(gateway, 'POST', '/api/clients/inspect', { policy, client })).body
  const reset = async (policy: string, client: unknown): Promise<unknown> =>
    (await askOperator(gateway, 'POST', '/api/clients/reset', { policy, client })).body
  const listed = async (policy: string): Promise<unknown> => {
    const { body } = await askOperator(gateway, 'GET', `/api/clients/limited?policy=${policy}`)
    return (body as { clients: { client: unknown }[] }).clients.map(({ client }) => client)
  }

  test('a key of global counts all clients together', async () => {
    const statuses = []
    for (let i = 0; i < 4; i++) statuses.push(await statusOf('/whole', { from: newAddress() }))
    expect(statuses).toEqual([200, 200, 429, 429])
    const client = { global: true }
    expect(await listed('whole')).toEqual([client])
    expect(await inspect('whole', client)).toMatchObject({ states: [{ used: 2, exceeded: true }] })
    expect(await reset('whole', client)).toEqual({ reset: ['whole'], counted: ['whole'] })
    expect(await statusOf('/whole')).toBe(200)
  })

  test('ip/24/48: all addresses of a network together', async () => {
    const policy = 'network'
    const statuses = []
    for (const from of ['127.0.7.1', '127.0.7.2', '127.0.7.255', '127.0.8.1'])
      statuses.push(await statusOf('/network', { from }))
    expect(statuses).toEqual([200, 200, 429, 200])
    const client = { ip: '127.0.7.0/24' }
    expect(await listed(policy)).toEqual([client])
    const used = { states: [{ used: 2, exceeded: true }] }
    for (const name of [client, '127.0.7.0/24', '127.0.7.77', { 'ip/24/48': '127.0.7.9' }])
      expect(await inspect(policy, name)).toMatchObject(used)
    expect(await inspect(policy, '127.0.9.1')).toMatchObject({ states: [{ used: 0 }] })
    for (const name of ['127.0.0.0/16', '127.0.7.0/25'])
      expect(await reset(policy, name)).toMatchObject({ code: 400 })
    const entry = { client, for: '1h' }
    expect(await askOperator(gateway, 'POST', '/api/clients/ban', entry)).toMatchObject({ status: 200 })
    expect(await statusOf('/network', { from: '127.0.7.3' })).toBe(429)
    expect(await askOperator(gateway, 'POST', '/api/clients/unban', { client })).toMatchObject({
      status: 200,
    })
    expect(await reset(policy, client)).toEqual({ reset: [policy], counted: [policy] })
    expect(await statusOf('/network', { from: '127.0.7.3' })).toBe(200)
    const { body } = await askOperator(gateway, 'GET', '/api/limits')
    expect((body as { limits: object[] }).limits).toContainEqual(
      expect.objectContaining({ name: policy, key: ['ip/24/48'] }),
    )
  })

  test('host: each host by itself, from all clients', async () => {
    const from = newAddress()
    const statusAt = (host: string): Promise<number> => statusOf('/site', { headers: { host }, from })
    expect(await statusAt('one.example')).toBe(200)
    for (const host of ['one.example', 'ONE.example', 'one.example.', 'one.example:8080', 'One.Example.:1'])
      expect(await statusAt(host), host).toBe(429)
    expect(await statusAt('two.example')).toBe(200)
    expect(await inspect('site', { host: 'ONE.example.:80' })).toMatchObject({ states: [{ used: 1 }] })
    expect(await inspect('site', 'one.example')).toMatchObject({ states: [{ used: 1 }] })
    const [client] = (await listed('site')) as unknown[]
    expect(client).toEqual({ id: expect.stringMatching(/^h:/) as string })
    expect(await reset('site', client)).toEqual({ reset: ['site'], counted: ['site'] })
    expect(await statusAt('one.example')).toBe(200)
  })

  test('hosts: a rule for some hosts only', async () => {
    const from = newAddress()
    const statusAt = (host: string): Promise<number> => statusOf('/tenant', { headers: { host }, from })
    expect(await statusAt('other.example')).toBe(200)
    expect(await statusAt('tenant.example')).toBe(200)
    for (const host of ['TENANT.example.:80', 'a.tenant.example', 'a.b.tenant.example'])
      expect(await statusAt(host), host).toBe(429)
    for (const host of ['other.example', 'xtenant.example', 'tenant.example.org'])
      expect(await statusAt(host), host).toBe(200)
    const { body } = await askOperator(gateway, 'GET', '/api/limits')
    expect((body as { limits: object[] }).limits).toContainEqual(
      expect.objectContaining({ name: 'tenant', hosts: ['tenant.example', '*.tenant.example'] }),
    )
  })

  test('cookie: each value by itself, and none without it', async () => {
    const from = newAddress()
    const value = `Value-of-${from}`
    const statusWith = (cookie: string): Promise<number> =>
      statusOf('/session', { headers: { cookie }, from })
    expect(await statusWith(`a=1; sid=${value}`)).toBe(200)
    expect(await statusWith(`sid="${value}"; b=2`)).toBe(429)
    expect(await statusWith(`sid=other-${from}`)).toBe(200)
    for (let i = 0; i < 3; i++) expect(await statusWith('a=1; sid=; sidx=2')).toBe(200)
    expect(await listed('session')).toEqual([{ id: expect.stringMatching(/^h:/) as string }])
    expect(await inspect('session', { 'cookie:SID': value })).toMatchObject({ states: [{ used: 1 }] })
    expect(await reset('session', value)).toEqual({ reset: ['session'], counted: ['session'] })
    expect(await statusWith(`sid=${value}`)).toBe(200)
  })

  test('query: a request with two values counts under both, and reports the one with less quota left', async () => {
    const [one, two] = [newAddress(), newAddress()]
    expect(await statusOf(`/search?user=${one}&user=${two}`)).toBe(200)
    expect(await statusOf(`/search?user=${one}`)).toBe(429)
    const refused = await gateway.send('GET', `/search?q=1&user=${two}&user=new-${two}`)
    expect(refused).toMatchObject({
      status: 429,
      headers: {
        'ratelimit-policy': '"search";q=1;w=3600',
        ratelimit: expect.stringMatching(/^"search";r=0;t=\d+$/) as string,
      },
    })
    expect(await statusOf(`/search?user=new-${two}`)).toBe(200)
    expect(await statusOf('/search?user=')).toBe(200)
    expect(await statusOf('/search')).toBe(200)
    expect(await inspect('search', { 'query:user': one })).toMatchObject({ states: [{ used: 1 }] })
    const clients = (await listed('search')) as unknown[]
    expect(clients).toHaveLength(2)
    for (const client of clients)
      expect(await reset('search', client)).toEqual({ reset: ['search'], counted: ['search'] })
    expect(await statusOf(`/search?user=${one}&user=${two}`)).toBe(200)
  })

  test('a value that can be read in more than eight ways is 400, and passes in shadow', async () => {
    const query = Array.from({ length: 9 }, (_, i) => `user=${newAddress()}-${i}`).join('&')
    expect(await statusOf(`/search?${query}`)).toBe(400)
    expect(await statusOf(`/search?${query.slice(0, query.lastIndexOf('&'))}`)).toBe(200)
    expect(await statusOf(`/shadow?${query}`)).toBe(200)
    const metrics = (await send(gateway.adminPort, 'GET', '/metrics')).body
    expect(metrics).toMatch(/^sluice_rejected_requests_total\{reason="ambiguous-key"\} 1$/m)
    expect(metrics).toMatch(/^sluice_decisions_total\{policy="search-in-shadow",outcome="allowed"\} 1$/m)
  })

  test('path: the value of a :name, with a header', async () => {
    const headers = { 'x-api-key': `key-${newAddress()}` }
    const statusAt = (path: string): Promise<number> => statusOf(path, { headers })
    expect(await statusAt('/projects/7/builds')).toBe(200)
    for (const path of ['/projects/7', '/Projects/%37/x/y', '/teams/a/projects/7', '/teams/b/projects/7;x'])
      expect(await statusAt(path), path).toBe(429)
    expect(await statusAt('/projects/8/builds')).toBe(200)
    for (let i = 0; i < 3; i++) expect(await statusOf('/projects/7/builds')).toBe(200)
    const client = { 'path:id': '7', 'header:x-api-key': headers['x-api-key'] }
    expect(await inspect('project', client)).toMatchObject({ states: [{ used: 1, exceeded: true }] })
    expect(await reset('project', client)).toEqual({ reset: ['project'], counted: ['project'] })
    expect(await statusAt('/projects/7')).toBe(200)
  })

  test('a key with first counts by the header if it is there, else by the address', async () => {
    const [from, other] = [newAddress(), newAddress()]
    const headers = { 'x-api-key': `key-${from}` }
    const path = '/key-or-address'
    expect(await statusOf(path, { from, headers })).toBe(200)
    expect(await statusOf(path, { from: other, headers })).toBe(429)
    expect(await statusOf(path, { from })).toBe(200)
    expect(await statusOf(path, { from })).toBe(429)
    // A key that looks like a client's address does not count as that client.
    expect(await statusOf(path, { from: other, headers: { 'x-api-key': from } })).toBe(200)
    expect(await statusOf(path, { from: other })).toBe(200)

    const policy = 'key-or-address'
    expect(await listed(policy)).toEqual(
      expect.arrayContaining([{ ip: from }, { id: expect.stringMatching(/^h:/) as string }]),
    )
    expect(await inspect(policy, { 'header:x-api-key': headers['x-api-key'] })).toMatchObject({
      states: [{ used: 1 }],
    })
    expect(await inspect(policy, from)).toMatchObject({ states: [{ used: 1 }] })
    expect(await reset(policy, { ip: from })).toEqual({ reset: [policy], counted: [policy] })
    expect(await statusOf(path, { from })).toBe(200)
    expect(await statusOf(path, { from, headers })).toBe(429)
    expect(await reset(policy, { 'header:x-api-key': headers['x-api-key'] })).toEqual({
      reset: [policy],
      counted: [policy],
    })
    expect(await statusOf(path, { from, headers })).toBe(200)
    const { body } = await askOperator(gateway, 'GET', '/api/limits')
    expect((body as { limits: object[] }).limits).toContainEqual(
      expect.objectContaining({ name: policy, key: [{ first: ['header:x-api-key', 'ip'] }] }),
    )
  })

  test('first: by each credential that is there, as the backend may take either', async () => {
    const path = '/either-key'
    const from = newAddress()
    const authorization = `Bearer token-of-${from}`
    const statuses = []
    for (let i = 0; i < 3; i++)
      statuses.push(await statusOf(path, { headers: { authorization, 'x-api-key': `made-up-${i}-${from}` } }))
    expect(statuses).toEqual([200, 429, 429])
    expect(await statusOf(path, { headers: { 'x-api-key': `made-up-0-${from}` } })).toBe(429)
    expect(await statusOf(path, { headers: { 'x-api-key': `made-up-1-${from}` } })).toBe(200)
    expect(await statusOf(path, { headers: { authorization } })).toBe(429)
    // The address does not count if there is a credential.
    expect(await statusOf(path, { from })).toBe(200)
  })

  test.each([
    [
      'Basic',
      (from: string) => Buffer.from(`u-${from}:p`).toString('base64'),
      ['=!~%', '%=', '!%!', '% junk', '%===='],
    ],
    ['Bearer', (from: string) => `${jwtOf(from)}.c2lnbmF0dXJl`, ['%!~', '%==junk', '% word', '%-+/_']],
  ])(
    'header:authorization: %s credentials are one client in every spelling',
    async (scheme, make, spellings) => {
      const word = make(newAddress())
      const statusWith = (authorization: string): Promise<number> =>
        statusOf('/authorized', { headers: { authorization } })
      expect(await statusWith(`${scheme} ${word}`)).toBe(200)
      for (const spelling of spellings) {
        expect(await statusWith(`${scheme} ${spelling.replace('%', word)}`), spelling).toBe(429)
        expect(await statusWith(`${scheme.toUpperCase()}  ${spelling.replace('%', word)}`), spelling).toBe(
          429,
        )
      }
      expect(await statusWith(`Foo ${word}`)).toBe(429)
      expect(await statusWith(`${scheme} ${make(newAddress())}`)).toBe(200)
    },
  )

  test('a key of host and address counts both together', async () => {
    const from = newAddress()
    const headers = { host: 'one.example' }
    expect(await statusOf('/site-and-address', { headers, from })).toBe(200)
    expect(await statusOf('/site-and-address', { headers, from })).toBe(429)
    expect(await statusOf('/site-and-address', { headers, from: newAddress() })).toBe(200)
    expect(await statusOf('/site-and-address', { from })).toBe(200)
    const client = { ip: from, host: 'one.example' }
    expect(await inspect('site-and-address', client)).toMatchObject({ states: [{ used: 1 }] })
    expect(await reset('site-and-address', client)).toMatchObject({ reset: ['site-and-address'] })
    expect(await statusOf('/site-and-address', { headers, from })).toBe(200)
  })
})

test('an operator who names an invalid client gets a 400', async () => {
  const CONFIG_FILE = join(import.meta.dirname, 'client-keys.yaml')
  const gateway = await startHosted({ CONFIG_FILE })
  for (const client of [
    { global: false },
    { global: 'x' },
    { host: '' },
    { host: 'a b' },
    { host: 'a/b' },
    { host: 1 },
  ])
    expect(
      (await askOperator(gateway, 'POST', '/api/clients/inspect', { client })).status,
      JSON.stringify(client),
    ).toBe(400)
})
