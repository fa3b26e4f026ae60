import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { send, startGateway } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { freePort } from '../support/network/ports.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'
import { wallClockMs } from '../support/calendar/wall-clock.ts'

// The operators' page, and the events that it receives twice a second. test/apps/page.test.ts tests it in a browser.

const token = 'a-token-of-the-operators'
const table = `
limits:
  - { name: api, match: '* /api', requests: 2, window: 15m }
  - { name: trial, match: '* /api', requests: 1, window: 15m, mode: shadow }
`

const open: IncomingMessage[] = []
afterEach(() => {
  vi.unstubAllGlobals()
  for (const response of open.splice(0)) response.destroy()
})

async function settings(env: Record<string, string> = {}): Promise<Record<string, string>> {
  const { url } = await startBackend()
  return { UPSTREAM_URL: url, CONFIG_FILE: writeConfigFile(table), ...env }
}

function listen(adminPort: number, headers: Record<string, string> = {}): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: adminPort, path: '/api/events', headers, agent: false }
    get(options, (response) => {
      open.push(response)
      response.on('error', () => undefined)
      resolve(response)
    }).on('error', reject)
  })
}

type Event = { readonly id: number; readonly data: Record<string, unknown> }

/** The events from now on; the reader disconnects when the loop over them ends. */
async function* eventsOf(response: IncomingMessage): AsyncGenerator<Event> {
  let text = ''
  for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
    text += chunk
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const found = /^id: (\d+)\nevent: status\ndata: (.*)$/.exec(block)
      if (found) yield { id: Number(found[1]), data: JSON.parse(found[2] ?? '') as Event['data'] }
    }
  }
}

/** The first event that `isMeant` accepts. */
async function eventWhere(response: IncomingMessage, isMeant: (event: Event) => boolean): Promise<Event> {
  for await (const event of eventsOf(response)) if (isMeant(event)) return event
  throw new Error('the gateway ended the event stream')
}

type Past = {
  readonly stepSeconds: number
  readonly first: number
  readonly last: number
  readonly rules: readonly (readonly [string, ...number[][]])[]
}

async function historyOf(response: IncomingMessage): Promise<Past> {
  let text = ''
  for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
    text += chunk
    // `retry` is a field of event streams: how long a client waits before it reconnects.
    const [, data] = /^retry: 1000\n\nevent: history\ndata: (.*)\n\n/.exec(text) ?? []
    if (data !== undefined) return JSON.parse(data) as Past
  }
  throw new Error('the gateway ended the event stream')
}

async function ask(gateway: Pick<HostedGateway, 'send'>, times: number, from = '127.0.0.9'): Promise<void> {
  for (let index = 0; index < times; index++) await gateway.send('GET', '/api', { from })
}

test('the files of the page need no token, are cached by their tags, and allow nothing but themselves', async () => {
  const { adminPort } = await startHosted(await settings({ ADMIN_TOKEN: token }))
  const modules = readdirSync('proxy/admin/page/browser').filter((name) => name.endsWith('.js'))
  expect(modules).toContain('main.js')
  const types = {
    '/': 'text/html; charset=utf-8',
    '/page/page.css': 'text/css; charset=utf-8',
    ...Object.fromEntries(modules.map((name) => [`/page/${name}`, 'text/javascript; charset=utf-8'])),
  }
  let bytes = 0
  for (const [path, type] of Object.entries(types)) {
    const { status, headers, body } = await send(adminPort, 'GET', path)
    expect(status).toBe(200)
    bytes += Number(headers['content-length'])
    expect(body).not.toContain('style=')
    expect(body).not.toMatch(/https?:\/\/(?!www\.w3\.org\/2000\/svg)/)
    expect(headers).toMatchObject({
      'content-type': type,
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-cache',
      etag: expect.stringMatching(/^"[\w-]{22}"$/) as string,
    })
    const tag = headers.etag ?? ''
    for (const known of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
      const again = await send(adminPort, 'GET', path, { headers: { 'if-none-match': known } })
      expect([again.status, again.body, again.headers.etag]).toEqual([304, '', tag])
    }
    const changed = await send(adminPort, 'GET', path, { headers: { 'if-none-match': '"other"' } })
    expect(changed.status).toBe(200)
    const head = await send(adminPort, 'HEAD', path)
    expect([head.status, head.body, head.headers['content-length']]).toEqual([
      200,
      '',
      headers['content-length'],
    ])
    expect(await send(adminPort, 'POST', path)).toMatchObject({
      status: 405,
      headers: { allow: 'GET, HEAD' },
    })
  }
  expect(bytes).toBeLessThan(100_000)
  for (const path of [
    '/page.html',
    '/page/page.html',
    '/page/',
    '/page/../server.ts',
    '/page/%2e%2e/page-files.ts',
  ])
    expect((await send(adminPort, 'GET', path)).status, path).toBe(404)
})

test('the events need the token', async () => {
  const { adminPort } = await startHosted(await settings({ ADMIN_TOKEN: token }))
  expect((await listen(adminPort)).statusCode).toBe(401)
  expect((await listen(adminPort, { authorization: 'Bearer wrong' })).statusCode).toBe(401)
  const response = await listen(adminPort, { authorization: `Bearer ${token}` })
  expect(response.statusCode).toBe(200)
  expect(response.headers).toMatchObject({ 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
  const [head, post] = await Promise.all(
    ['HEAD', 'POST'].map((method) =>
      send(adminPort, method, '/api/events', { headers: { authorization: `Bearer ${token}` } }),
    ),
  )
  expect([head?.status, post?.status]).toEqual([200, 405])
})

test('without a token a page of another site cannot follow the events', async () => {
  const { adminPort } = await startHosted(await settings())
  for (const headers of [
    { host: 'evil.example' },
    { origin: 'https://evil.example' },
    { 'sec-fetch-site': 'cross-site' },
  ] as Record<string, string>[])
    expect((await listen(adminPort, headers)).statusCode).toBe(403)
  expect((await listen(adminPort)).statusCode).toBe(200)
})

test.each(['1', '2'])('an event has the counts, with WORKERS=%s', async (workers) => {
  const gateway = await startHosted(await settings(workers === '1' ? {} : { WORKERS: workers }))
  await ask(gateway, 5)
  await askOperator(gateway, 'POST', '/api/clients/ban', {
    client: '127.0.0.8',
    for: '1h',
    reason: 'scraping',
  })
  await askOperator(gateway, 'POST', '/api/clients/override', {
    policy: 'api',
    client: '127.0.0.7',
    requests: 10,
    for: '1h',
  })
  const response = await listen(gateway.adminPort)
  const { data } = await eventWhere(response, (event) => event.data['workersAnswering'] === Number(workers))
  expect(data).toMatchObject({
    status: { status: 'ready', rules: 2, workers: Number(workers), limitsEnabled: true },
    breakerOpen: false,
    config: { lastReadSucceeded: true },
    limited: {
      clients: [
        { policy: 'api', client: { ip: '127.0.0.9' }, refusals: 3 },
        { policy: 'trial', client: { ip: '127.0.0.9' }, mode: 'shadow', refusals: 1 },
      ],
    },
    bans: { total: 1, bans: [{ client: { ip: '127.0.0.8' }, reason: 'scraping' }] },
    overrides: { total: 1, overrides: [{ client: { ip: '127.0.0.7' }, requests: 10 }] },
  })
  const decisions = new Map(data['decisions'] as [string, object][])
  expect(decisions.get('api')).toMatchObject({ allowed: 2, refused: 3 })
  expect(decisions.get('trial')).toMatchObject({ allowed: 1, refused: 0, shadow: 1 })
  expect((data['requests'] as number[])[4]).toBe(3)
})

test('the page shows why a reload was refused until the settings are valid again', async () => {
  const env = await settings()
  const gateway = await startHosted(env)
  const file = env['CONFIG_FILE'] ?? ''
  const written = readFileSync(file, 'utf8')
  const mistakesIn = async (isRight: boolean): Promise<unknown> => {
    const response = await listen(gateway.adminPort)
    const { data } = await eventWhere(
      response,
      (event) => (event.data['config'] as { lastReadSucceeded: boolean }).lastReadSucceeded === isRight,
    )
    return (data['config'] as { mistakes: unknown }).mistakes
  }
  expect(await mistakesIn(true)).toEqual([])
  writeFileSync(file, 'limits:\n  - { name: a, match: GET /a, requests: no, window: 1m }\n')
  await askOperator(gateway, 'POST', '/api/reload', {})
  expect(await mistakesIn(false)).toEqual([
    expect.stringMatching(/sluice\.yaml:2: rule "a", requests: got "?(no|false)"?, needs /) as string,
  ])
  writeFileSync(file, written)
  await askOperator(gateway, 'POST', '/api/reload', {})
  expect(await mistakesIn(true)).toEqual([])
})

test('events continue after a reload, with the counts since', async () => {
  const gateway = await startHosted(await settings())
  const response = await listen(gateway.adminPort)
  const refusedIn = ({ data }: Event): number =>
    new Map(data['decisions'] as [string, { refused: number }][]).get('api')?.refused ?? 0
  let last = 0
  for await (const event of eventsOf(response)) {
    expect(event.id).toBeGreaterThan(last)
    if (last === 0) {
      expect(refusedIn(event)).toBe(0)
      await ask(gateway, 3)
    }
    last = event.id
    if (refusedIn(event) === 1) return
  }
  throw new Error('the gateway ended the event stream')
})

test.each(['1', '2'])(
  'the history comes first, even for a listener that reconnects, with WORKERS=%s',
  async (workers) => {
    const gateway = await startHosted(await settings(workers === '1' ? {} : { WORKERS: workers }))
    await ask(gateway, 5)
    for (const headers of [{}, { 'last-event-id': '41' }] as Record<string, string>[]) {
      const history = await historyOf(await listen(gateway.adminPort, headers))
      expect(history.stepSeconds).toBe(10)
      // A time of the wall clock: at most a minute off.
      expect(Math.abs(history.last - wallClockMs() / 10_000)).toBeLessThan(6)
      const steps = history.last - history.first + 1
      const sums = history.rules.map(([name, ...counts]) => [
        name,
        ...counts.map((each) => {
          expect(each).toHaveLength(steps)
          return each.reduce((sum, count) => sum + count, 0)
        }),
      ])
      expect(new Set(sums)).toEqual(
        new Set([
          ['api', 2, 3, 0],
          ['trial', 1, 0, 1],
        ]),
      )
    }
  },
)

test('there are 8 listeners at most, and room for another when one leaves', async () => {
  const { adminPort } = await startHosted(await settings())
  const responses: IncomingMessage[] = []
  for (let index = 0; index < 8; index++) responses.push(await listen(adminPort))
  expect(responses.map(({ statusCode }) => statusCode)).toEqual(Array.from({ length: 8 }, () => 200))
  expect((await listen(adminPort)).statusCode).toBe(503)
  responses[0]?.destroy()
  await eventually('the page may be listened to again', async () =>
    expect((await listen(adminPort)).statusCode).toBe(200),
  )
})

test('event ids continue after a restart of the gateway', async () => {
  const env = await settings({ ADMIN_PORT: String(await freePort()) })
  const first = await startGateway(env)
  const before = await eventWhere(await listen(first.adminPort), () => true)
  await first.process.stop()
  const second = await startGateway(env)
  expect(second.adminPort).toBe(first.adminPort)
  const resumed = await listen(second.adminPort, { 'last-event-id': String(before.id + 41) })
  expect((await eventWhere(resumed, () => true)).id).toBe(before.id + 42)
})

describe('Undo', () => {
  const client = { ip: '192.0.2.7' }

  async function open() {
    const gateway = await startHosted(await settings())
    const post = (path: string, body: object) => askOperator(gateway, 'POST', `/api/clients/${path}`, body)
    const list = async (name: 'bans' | 'overrides'): Promise<unknown> =>
      ((await askOperator(gateway, 'GET', `/api/${name}`)).body as Record<string, unknown>)[name]
    const { click, textOf, ...actions } = await loadActions(gateway)
    const undo = async (told: RegExp): Promise<void> => {
      click('undo')
      await eventually('the page says so', () => expect(textOf('told')).toMatch(told))
    }
    return { post, list, undo, ...actions }
  }

  test('to undo an unban bans the client under the rules that it was banned under, not from everything', async () => {
    const { post, list, undo, unban } = await open()
    await post('ban', { client, policy: 'api', for: '1h' })
    await unban({ client, policy: null })
    expect(await list('bans')).toEqual([])
    await undo(/ is banned again$/)
    expect(await list('bans')).toMatchObject([{ client, policy: 'api', by: 'operator' }])
  })

  test('to undo an unban brings back each ban with its own end and reason', async () => {
    const { post, list, undo, unban } = await open()
    await post('ban', { client, policy: 'api', for: '1h', reason: 'scraping' })
    await post('ban', { client, for: '10m' })
    await unban({ client, policy: null })
    await undo(/ is banned again$/)
    await eventually('both bans are back', async () => expect(await list('bans')).toHaveLength(2))
    expect(await list('bans')).toEqual(
      expect.arrayContaining([
        { client, policy: 'api', by: 'operator', reason: 'scraping', expiresSeconds: about(3600) },
        { client, policy: null, by: 'operator', expiresSeconds: about(600) },
      ]),
    )
  })

  test('to undo a ban leaves the bans under rules, and brings back the ban that it had replaced', async () => {
    const { post, list, undo, ban } = await open()
    await post('ban', { client, policy: 'api', for: '2h' })
    await ban({ client })
    await undo(/ is not banned any more$/)
    expect(await list('bans')).toMatchObject([{ client, policy: 'api' }])
    await post('ban', { client, for: '1d', reason: 'scraping' })
    await ban({ client })
    await undo(/ is banned again$/)
    expect(await list('bans')).toEqual(
      expect.arrayContaining([
        { client, policy: null, by: 'operator', reason: 'scraping', expiresSeconds: about(86_400) },
      ]),
    )
  })

  test('to undo another limit brings back the limit that the client had before', async () => {
    const { post, list, undo, setOverride } = await open()
    await post('override', { client, policy: 'api', requests: 50, for: '1d', label: 'Acme' })
    await setOverride({ client, policy: 'api', requests: 100, for: '1h' })
    await undo(/ has 50 requests again$/)
    expect(await list('overrides')).toEqual([
      { client, policy: 'api', requests: 50, label: 'Acme', expiresSeconds: about(86_400) },
    ])
  })

  test('a change of another operator meanwhile is not undone', async () => {
    const { post, list, undo, ...actions } = await open()
    await actions.ban({ client })
    await post('ban', { client, for: '1d', reason: 'scraping' })
    await undo(/^Not undone/)
    expect(await list('bans')).toMatchObject([{ reason: 'scraping' }])
    await actions.unban({ client, policy: null })
    await post('ban', { client, for: '2d', reason: 'again' })
    await undo(/^Not undone/)
    expect(await list('bans')).toMatchObject([{ reason: 'again', expiresSeconds: about(172_800) }])
    await actions.setOverride({ client, policy: 'api', requests: 100, for: '1h' })
    await post('override', { client, policy: 'api', requests: 7, for: '1h' })
    await undo(/^Not undone/)
    await actions.removeOverride({ client, policy: 'api' })
    await post('override', { client, policy: 'api', requests: 8, for: '1h' })
    await undo(/^Not undone/)
    expect(await list('overrides')).toMatchObject([{ requests: 8 }])
  })
})

/** These seconds, of which fewer than 50 have passed. */
function about(seconds: number): unknown {
  return expect.closeTo(seconds, -2) as unknown
}

type Named = { readonly client: object; readonly policy: string | null }

type Actions = {
  readonly ban: (named: Pick<Named, 'client'>) => Promise<boolean>
  readonly unban: (named: Named) => Promise<boolean>
  readonly setOverride: (
    override: Named & { readonly requests: number; readonly for: string },
  ) => Promise<boolean>
  readonly removeOverride: (named: Named) => Promise<boolean>
}

type StubElement = { readonly focus: () => void; readonly addEventListener: unknown; textContent?: string }

/** Loads the actions of the page without a browser, with elements that only have what the actions use. */
async function loadActions({
  adminPort,
}: HostedGateway): Promise<
  Actions & { readonly click: (id: string) => void; readonly textOf: (id: string) => string | undefined }
> {
  const elements = new Map<string, StubElement>()
  const listeners = new Map<string, () => void>()
  const makeElement = (id: string): StubElement => ({
    focus: () => undefined,
    addEventListener: (event: string, listener: () => void) => listeners.set(`${event} ${id}`, listener),
  })
  const getElementById = (id: string): StubElement | undefined => {
    if (!elements.has(id)) elements.set(id, makeElement(id))
    return elements.get(id)
  }
  vi.stubGlobal('document', { getElementById })
  vi.stubGlobal('sessionStorage', { getItem: () => null })
  const { fetch } = globalThis
  const here = (path: string, options: RequestInit): Promise<Response> =>
    fetch(`http://127.0.0.1:${adminPort}/${path}`, options)
  vi.stubGlobal('fetch', here)
  const actions = pathToFileURL(join(import.meta.dirname, '../../proxy/admin/page/browser/actions.js')).href
  // A module of its own for each gateway, whose buttons call its own actions.
  const { ban, unban, setOverride, removeOverride } = (await import(`${actions}?${adminPort}`)) as Actions
  return {
    ban,
    unban,
    setOverride,
    removeOverride,
    click: (id) => listeners.get(`click ${id}`)?.(),
    textOf: (id) => getElementById(id)?.textContent,
  }
}
