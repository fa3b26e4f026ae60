import type { RequestListener } from 'node:http'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend, type Backend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { send, type Reply } from '../support/gateway/gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { parseExposition } from '../support/metrics/prometheus.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

// A limit by account. The attacker has any number of addresses, and may write the account in any form that some backend accepts.

const table = `limits:
  - { name: account, match: POST /login, key: 'body:email', requests: 5, window: 15m, countStatus: 401 }
  - { name: plain, match: POST /plain, key: 'body:user.name', requests: 5, window: 15m }
  - { name: sliding, match: POST /sliding, key: 'body:email', requests: 5, window: 15m, algorithm: sliding }
  - { name: either, match: POST /either, key: { first: ['body:email', 'header:x-user'] }, requests: 5, window: 15m }
  - { name: both, match: POST /both, key: ['body:email', 'body:team'], requests: 5, window: 15m }
  - name: overridden
    match: POST /overridden
    key: { first: ['body:email', 'header:x-user'] }
    requests: 2
    window: 15m
    overrides:
      - { clients: [{ 'body:email': Demo@example.com }, { 'body:email': 'straße@example.com' }], requests: 4 }
      - { clients: { 'body:email': locked@example.com }, requests: 1 }
  - { name: banning, match: POST /banning, key: 'body:email', requests: 1, window: 15m, ban: { after: 1, for: 1h } }
`

const json = { 'content-type': 'application/json' }
const form = { 'content-type': 'application/x-www-form-urlencoded' }

let lastClient = 0

/** An address that has no counters yet. */
function newClient(): string {
  lastClient += 1
  return `127.0.${80 + Math.floor(lastClient / 250)}.${1 + (lastClient % 250)}`
}

let lastAccount = 0

function newAccount(): string {
  lastAccount += 1
  return `user${lastAccount}@example.com`
}

/** The bodies that reached the backend. */
const bodies: string[] = []

const answer: RequestListener = (request, response) => {
  let body = ''
  request.setEncoding('latin1')
  request.on('data', (text: string) => (body += text))
  request.on('end', () => {
    bodies.push(body)
    response.writeHead(body.includes('right') ? 200 : 401).end('ok')
  })
}

async function unread(gateway: HostedGateway, policy: string, reason: string): Promise<number> {
  const { body } = await send(gateway.adminPort, 'GET', '/metrics')
  return parseExposition(body).value('sluice_unread_keys_total', { policy, reason })
}

async function usedBy(gateway: HostedGateway, policy: string, client: object): Promise<unknown> {
  const { body } = await askOperator(gateway, 'POST', '/api/clients/inspect', { policy, client })
  return (body as { states: { used: number }[] }).states[0]?.used
}

describe.each(['memory', 'workers', 'Redis'] as const)('counted in %s', (place) => {
  let gateways: readonly HostedGateway[]
  let backend: Backend
  let turn = 0

  beforeAll(async () => {
    backend = await startBackend(answer)
    const file = join(makeTemporaryDirectory(), 'sluice.yaml')
    writeFileSync(file, table)
    const env = {
      UPSTREAM_URL: backend.url,
      CONFIG_FILE: file,
      STORE_TIMEOUT: '30s',
      ...(place === 'workers' && { WORKERS: '2' }),
      ...(place === 'Redis' && { REDIS_URL: await freshRedis() }),
    }
    gateways = await Promise.all(Array.from({ length: place === 'Redis' ? 2 : 1 }, () => startHosted(env)))
  })

  function gateway(): HostedGateway {
    const chosen = gateways[turn++ % gateways.length]
    if (!chosen) throw new RangeError('at least one gateway')
    return chosen
  }

  /** Guesses a password, from another address each time. */
  function guess(
    path: string,
    body: string | Buffer,
    headers: Record<string, string> = json,
  ): Promise<Reply> {
    return gateway().send('POST', path, { from: newClient(), body, headers })
  }

  test('five of 60 parallel wrong guesses from as many addresses pass', async () => {
    const email = newAccount()
    const spellings = [
      () => guess('/login', JSON.stringify({ email, password: 'wrong' })),
      () => guess('/login', `password=wrong&email=${encodeURIComponent(email)}`, form),
      () => guess('/login', JSON.stringify({ EMAIL: ` ${email.toUpperCase()} ` })),
    ]
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => spellings)
        .flat()
        .map((spell) => spell()),
    )
    const statuses = replies.map(({ status }) => status)
    expect(statuses.filter((status) => status === 401)).toHaveLength(5)
    expect(statuses.filter((status) => status === 429)).toHaveLength(55)
    expect((await guess('/login', JSON.stringify({ email: newAccount() }))).status).toBe(401)
  })

  test('successful sign-ins do not count', async () => {
    const email = newAccount()
    for (let round = 0; round < 12; round++) {
      expect((await guess('/login', JSON.stringify({ email, password: 'right' }))).status).toBe(200)
      await eventually(
        'it is given back',
        async () => (await usedBy(gateway(), 'account', { 'body:email': email })) === 0,
      )
    }
  })

  test('a response does not reveal whether the account exists, and a refusal has Retry-After', async () => {
    const email = newAccount()
    const body = JSON.stringify({ user: { name: email } })
    const replies = []
    for (let i = 0; i < 6; i++) replies.push(await guess('/plain', body))
    for (const { headers } of replies) {
      expect(headers['ratelimit']).toBeUndefined()
      expect(headers['ratelimit-policy']).toBeUndefined()
    }
    expect(replies.at(-1)).toMatchObject({
      status: 429,
      headers: { 'retry-after': expect.stringMatching(/^(900|8\d\d)$/) as string },
    })
  })

  test.each(['plain', 'sliding'])('a batch counts each of its requests, all or nothing: %s', async (rule) => {
    const name = newAccount()
    const other = newAccount()
    const login = (account: string): object => ({ email: account, user: { name: account } })
    const batch = (...accounts: string[]): Promise<Reply> =>
      guess(`/${rule}`, JSON.stringify(accounts.map(login)))
    expect((await batch(...Array.from({ length: 20 }, () => name))).status).toBe(429)
    expect((await batch(name, name, other, name)).status).toBe(401)
    // The first account has two requests left, the other has four.
    expect((await batch(other, name, name, name)).status).toBe(429)
    expect((await batch(other, name, name)).status).toBe(401)
    expect((await batch(name)).status).toBe(429)
    const part = rule === 'plain' ? 'body:user.name' : 'body:email'
    expect(await usedBy(gateway(), rule, { [part]: name })).toBe(5)
    expect(await usedBy(gateway(), rule, { [part]: other })).toBe(2)
  })

  test.each<[string, string, string | Buffer, Record<string, string>]>([
    ['a body without the member', 'missing', '{"x":1}', json],
    ['no body', 'missing', '', json],
    ['another type', 'type', 'hello', { 'content-type': 'text/plain' }],
    ['a charset', 'charset', '{"x":1}', { 'content-type': 'application/json; charset=utf-16' }],
    ['a compressed body', 'encoding', gzipSync('{}'), { ...json, 'content-encoding': 'gzip' }],
    ['broken JSON', 'syntax', '{"x":', json],
    ['a large body', 'size', `{"x":"${'x'.repeat(70_000)}"}`, json],
    ['an object in place of the value', 'value', '{"user":{"name":{"$ne":""}}}', json],
  ])('%s counts by address', async (_, reason, body, headers) => {
    const from = newClient()
    const before = await unread(gateways[0] ?? gateway(), 'plain', reason)
    const statuses = []
    for (let i = 0; i < 6; i++)
      statuses.push((await gateways[0]?.send('POST', '/plain', { from, body, headers }))?.status)
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
    expect((await gateway().send('POST', '/plain', { from: newClient(), body, headers })).status).toBe(401)
    expect(await usedBy(gateway(), 'plain', { ip: from })).toBe(5)
    await eventually(
      'the metric',
      async () => (await unread(gateways[0] ?? gateway(), 'plain', reason)) >= before + 6,
    )
  })

  test('an account in an ambiguous body counts in addition to the address', async () => {
    const name = newAccount()
    const forms: [string, Record<string, string>][] = [
      [`{"user":{"name":"${name}"}}`, { 'content-type': 'text/plain' }],
      [`{"user":{"name":"x","name":"${name}"}}`, json],
      [`{user:{name:'${name}'}}`, json],
      [`\ufeff{"user":{"name":"${name}"}} trailing`, json],
      [`user[name]=${name}`, form],
    ]
    for (const [body, headers] of forms) expect((await guess('/plain', body, headers)).status).toBe(401)
    expect((await guess('/plain', JSON.stringify({ user: { name } }))).status).toBe(429)
  })

  test('first: the account, or what the header says, and the address without either', async () => {
    const email = newAccount()
    const ask = async (from: string, body: object, user?: string): Promise<number> =>
      (
        await gateway().send('POST', '/either', {
          from,
          body: JSON.stringify(body),
          headers: { ...json, ...(user && { 'x-user': user }) },
        })
      ).status
    for (let i = 0; i < 5; i++) expect(await ask(newClient(), { email })).toBe(401)
    expect(await ask(newClient(), { email })).toBe(429)
    const user = newAccount()
    for (let i = 0; i < 5; i++) expect(await ask(newClient(), {}, user)).toBe(401)
    expect(await ask(newClient(), {}, user)).toBe(429)
    const from = newClient()
    for (let i = 0; i < 5; i++) expect(await ask(from, {})).toBe(401)
    expect(await ask(from, {})).toBe(429)
  })

  test('a composite key takes its parts from the same element', async () => {
    const [a, b] = [newAccount(), newAccount()]
    const elements = [
      { email: a, team: 'x' },
      { email: b, team: 'y' },
    ]
    expect((await guess('/both', JSON.stringify(elements))).status).toBe(401)
    expect(await usedBy(gateway(), 'both', { 'body:email': a, 'body:team': 'x' })).toBe(1)
    expect(await usedBy(gateway(), 'both', { 'body:email': a, 'body:team': 'y' })).toBe(0)
  })

  test('an override of the file is for an account in every spelling', async () => {
    const passing = async (email: string, spell = (text: string): string => text): Promise<number> => {
      const statuses: number[] = []
      for (let i = 0; i < 6; i++)
        statuses.push((await guess('/overridden', JSON.stringify({ email: spell(email) }))).status)
      return statuses.filter((status) => status === 401).length
    }
    expect(await passing('demo@example.com', (text) => ` ${text.toUpperCase()}`)).toBe(4)
    expect(await passing('strasse@example.com')).toBe(4)
    expect(await passing('locked@example.com')).toBe(1)
    expect(await passing(newAccount())).toBe(2)
    const { body } = await askOperator(gateway(), 'POST', '/api/clients/inspect', {
      policy: 'overridden',
      client: { 'body:email': 'demo@example.com' },
    })
    expect(body).toMatchObject({ states: [{ used: 4, limit: 4 }] })
  })

  test('explain says which override has the account', async () => {
    const ask = async (email: string): Promise<unknown> => {
      const asked = {
        method: 'POST',
        target: '/overridden',
        ip: newClient(),
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ email }),
      }
      const { body } = await askOperator(gateway(), 'POST', '/api/explain', asked)
      return (body as { rules: { name: string }[] }).rules.find(({ name }) => name === 'overridden')
    }
    expect(await ask('LOCKED@example.com')).toMatchObject({ counts: true, requests: 1, override: 2 })
    expect(await ask(newAccount())).not.toHaveProperty('override')
  })

  test('an account is banned, and an operator gives it another limit', async () => {
    const email = newAccount()
    const body = JSON.stringify({ email })
    expect((await guess('/banning', body)).status).toBe(401)
    expect((await guess('/banning', body)).status).toBe(429)
    const client = { 'body:email': email }
    await eventually('the account is banned', async () => {
      const { body: list } = await askOperator(gateway(), 'GET', '/api/bans')
      return JSON.stringify(list).includes('banning')
    })
    const other = newAccount()
    await askOperator(gateway(), 'POST', '/api/clients/override', {
      policy: 'plain',
      client: { 'body:user.name': other },
      requests: 1,
      for: '1h',
    })
    await eventually('the override holds', async () => {
      const replies = [
        await guess('/plain', JSON.stringify({ user: { name: other } })),
        await guess('/plain', JSON.stringify({ user: { name: other } })),
      ]
      return replies.some(({ status }) => status === 429)
    })
    expect(client).toBeDefined()
  })

  test('the body reaches the backend byte for byte', async () => {
    const body = JSON.stringify({ user: { name: newAccount() }, padding: 'x'.repeat(100_000) })
    expect((await guess('/plain', body)).status).toBe(401)
    expect(bodies).toContain(body)
  })
})
