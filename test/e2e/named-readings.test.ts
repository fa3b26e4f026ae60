import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

/*
 * A value that backends read in several ways counts for each reading, so an operator who names the value means all readings. If a reset
 * covered only the first reading, it would report success, and the client would stay locked out.
 */

const table = `
limits:
  - name: account
    match: POST /login
    key: body:user.email
    requests: 1
    window: 15m
    overrides:
      - { clients: [{ 'body:user.email': björn@example.com }, { 'body:user.email': 100%25 }], requests: 3 }
  - name: either
    match: POST /either
    key: { first: ['body:user.email', 'header:x-user'] }
    requests: 1
    window: 15m
  - name: pair
    match: POST /pair
    key: [ip, 'body:user.email']
    requests: 1
    window: 15m
  - { name: keyed, match: GET /keyed, key: 'header:authorization', requests: 1, window: 15m }
  - { name: paths, match: 'GET /users/:id', key: 'path:id', requests: 1, window: 15m }
`

const backend = await startBackend()
const gateway = await startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE: writeConfigFile(table) })

type Given = {
  readonly method: string
  readonly path: string
  readonly headers?: Record<string, string>
  readonly body?: string
}

const post = (path: string, email: string): Given => ({
  method: 'POST',
  path,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ user: { email } }),
})

const passes = async ({ method, path, ...given }: Given): Promise<boolean> =>
  (await gateway.send(method, path, given)).status === 200

const ask = async (path: string, question: object): Promise<unknown> => {
  const { status, body } = await askOperator(gateway, 'POST', `/api/clients/${path}`, question)
  expect([path, status]).toEqual([path, 200])
  return body
}

const accounts = ['müller@example.com', 'Straße', 'a%20b', 'ä', '日本', 'anna@example.com', 'x'.repeat(3000)]

test.each([
  ...accounts.map((email) => ['account', { 'body:user.email': email }, post('/login', email)] as const),
  ...accounts.map((email) => ['either', { 'body:user.email': email }, post('/either', email)] as const),
  ...accounts.map(
    (email) => ['pair', { ip: '127.0.0.1', 'body:user.email': email }, post('/pair', email)] as const,
  ),
  ...['Basic bfxsbGVyOnBhc3M=', 'a\tb', 'Bearer abc'].map((authorization) => {
    const request: Given = { method: 'GET', path: '/keyed', headers: { authorization } }
    return ['keyed', { 'header:authorization': authorization }, request] as const
  }),
  ...['a;b', 'a&b', "o'brien", 'müller'].map((id) => {
    const request: Given = { method: 'GET', path: `/users/${encodeURIComponent(id)}` }
    return ['paths', { 'path:id': id }, request] as const
  }),
])('operators reach a client by all readings of its value: %s, %o', async (policy, client, request) => {
  const about = { policy, client }
  await ask('reset', about)
  expect(await passes(request)).toBe(true)
  expect(await passes(request)).toBe(false)

  const before = await ask('inspect', about)
  const explained = await askOperator(gateway, 'POST', '/api/explain', {
    ...request,
    target: request.path,
    path: undefined,
  })
  const counted = (explained.body as { rules: { name: string; states?: { client: object }[] }[] }).rules
    .flatMap(({ name, states = [] }) => (name === policy ? states : []))
    .map((state) => state.client)
  const named = (before as { states: { client: object; used: number }[] }).states
  expect(named.map((state) => state.client)).toEqual(expect.arrayContaining(counted))

  await ask('override', { ...about, requests: 2, for: '1h' })
  expect(await passes(request)).toBe(true)
  expect(await ask('override/remove', about)).toEqual({ removed: true })
  expect(await passes(request)).toBe(false)

  expect(await ask('reset', about)).toEqual({ reset: [policy], counted: [policy] })
  expect(await passes(request)).toBe(true)

  await ask('reset', about)
  await ask('ban', { ...about, for: '1h' })
  expect(await passes(request)).toBe(false)
  await ask('unban', about)
  expect(await passes(request)).toBe(true)

  await ask('reset', about)
  await ask('ban', { client, for: '1h' })
  expect(await passes(request)).toBe(false)
  await ask('unban', { client })
  expect(await passes(request)).toBe(true)
  await ask('reset', about)
})

test.each(['björn@example.com', '100%25'])(
  'an override in the file is for all readings of an account: %s',
  async (email) => {
    const request = post('/login', email)
    const replies = [
      await passes(request),
      await passes(request),
      await passes(request),
      await passes(request),
    ]
    expect(replies).toEqual([true, true, true, false])
  },
)

test('a ban of a value that no request may have is answered 400', async () => {
  const { status } = await askOperator(gateway, 'POST', '/api/clients/ban', {
    policy: 'account',
    client: { 'body:user.email': '%00'.repeat(20) },
    for: '1h',
  })
  expect(status).toBe(400)
})
