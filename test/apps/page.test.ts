import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { send, startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { freePort } from '../support/network/ports.ts'
import { watchForBusyMachine } from '../support/load/busy-machine.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { runClient } from './client.ts'

// The operators' page in Chromium. With PAGE_PICTURES=FOLDER the test saves pictures of its states there.

const token = 'correct-horse-battery-staple'
const table = "limits: [{ name: api, match: '* /api', requests: 2, window: 15m }]\n"
const pictures = process.env['PAGE_PICTURES'] ?? ''

function pageOf({ adminPort }: Pick<GatewayProcess, 'adminPort'>) {
  return { name: 'page', protocol: 'http', origin: `http://127.0.0.1:${adminPort}` } as const
}

async function refuse({ port }: Pick<GatewayProcess, 'port'>, times = 5): Promise<void> {
  for (let asked = 0; asked < times; asked++) await send(port, 'GET', '/api')
}

/** Actions that a client can trigger here while it uses the page: `POST /<name>`, answered when the action is done. */
async function control(actions: Record<string, () => Promise<unknown>>): Promise<string> {
  const server = createServer((request, response) => {
    const action = actions[(request.url ?? '').slice(1)]
    void (action?.() ?? Promise.reject(new Error('no such action'))).then(
      (answer) => response.end(typeof answer === 'string' ? answer : ''),
      (error: unknown) => response.writeHead(500).end(String(error)),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('an operator sees clients refused by another replica, lets them in everywhere, bans and explains, by keyboard', async () => {
  const { url } = await startBackend()
  const { port } = await startRedisServer()
  const env = {
    UPSTREAM_URL: url,
    REDIS_URL: `redis://127.0.0.1:${port}`,
    ADMIN_TOKEN: token,
    CONFIG_FILE: writeConfigFile(table),
  }
  const [first, second] = [await startGateway(env), await startGateway(env)]
  const args = [token, String(first.port), String(second.port)]
  const judge = watchForBusyMachine()
  const seen = await runClient('page.js', pageOf(first), args)
  expect(seen).toEqual({
    health: 'Healthy',
    wrongToken: expect.stringMatching(/^Wrong token: /) as string,
    title: 'Sluice',
    statuses: [200, 200, 429],
    shownAfterMs: expect.any(Number) as number,
    timeLeft: expect.stringMatching(/^1[45] min/) as string,
    elsewhereToo: 429,
    // Both replicas have reset the counts.
    letIn: [200, 200, 429],
    replicas: 2,
    problems: [],
    elsewhere: [],
  })
  judge('a refused client is shown', (seen as { shownAfterMs: number }).shownAfterMs, 1_000)
})

test('the page goes on when its gateway was restarted', async () => {
  const { url } = await startBackend()
  const ports = { PORT: String(await freePort()), ADMIN_PORT: String(await freePort()) }
  const env = { UPSTREAM_URL: url, CONFIG_FILE: writeConfigFile(table), ...ports }
  let gateway = await startGateway(env)
  const url2 = await control({
    refusals: () => refuse(gateway),
    stop: () => gateway.process.stop(),
    start: async () => (gateway = await startGateway(env)),
  })
  expect(await runClient('page-restart.js', pageOf(gateway), [url2])).toEqual({
    away: { title: expect.stringMatching(/^.+ since .+ · Sluice$/) as string, isStale: true },
    back: { title: 'Sluice', isStale: false },
    errors: [],
  })
})

test('the page shows every state, accessibly, and fits on a phone', async () => {
  const { url } = await startBackend()
  const redis = await startRedisServer()
  const file = writeConfigFile(table)
  const env = { UPSTREAM_URL: url, REDIS_URL: redis.url, ADMIN_TOKEN: token, CONFIG_FILE: file }
  const gateway = await startGateway({ ...env, STORE_TIMEOUT: '500ms' })
  const headers = { authorization: `Bearer ${token}` }
  const operator = (path: string, body: unknown) => askOperator(gateway, 'POST', path, body, headers)
  const states = await control({
    async busy() {
      await refuse(gateway)
      await operator('/api/clients/ban', { client: '2001:db8::1', for: '1h', reason: 'scraping' })
      const override = { policy: 'api', client: '127.0.0.8', requests: 100, for: '1d', label: 'Acme' }
      await operator('/api/clients/override', override)
    },
    async 'wrong-reload'() {
      writeFileSync(file, 'limits: nonsense\n')
      await operator('/api/reload', {})
    },
    async 'redis-away'() {
      await redis.signal('SIGSTOP')
      for (let asked = 0; asked < 5; asked++)
        await send(gateway.port, 'GET', '/api', { from: `127.0.1.${asked + 1}` })
    },
  })
  const seen = await runClient('page-states.js', pageOf(gateway), [token, states, pictures])
  await redis.signal('SIGCONT')
  expect(seen).toEqual({
    violations: [],
    overflowing: [],
    errors: [],
    checked: expect.any(Number) as number,
    facts: Object.fromEntries(
      ['light', 'dark'].map((look) => [
        look,
        {
          isRefusedFirst: true,
          plotPart: expect.any(Number) as number,
          axis: '15 min ago 10 5 now',
          counts: '* /api · by address',
        },
      ]),
    ),
    healths: {
      'sign-in': 'Token needed',
      empty: 'Healthy',
      busy: 'Healthy',
      'looked-up': 'Healthy',
      explained: 'Healthy',
      dialog: 'Healthy',
      'refused-reload': 'The last reload was refused',
      'redis-away': 'Redis unavailable',
    },
  })
  const { checked, facts } = seen as { checked: number; facts: Record<string, { plotPart: number }> }
  expect(checked).toBeGreaterThan(100)
  // The plot fills the width beside the rule's figures, and on a phone almost the whole width.
  expect(facts['light']?.plotPart).toBeGreaterThan(0.25)
  expect(facts['dark']?.plotPart).toBeGreaterThan(0.7)
})

test('an operator sets the plan of a customer, undoes that, and removes it from the list', async () => {
  const { url } = await startBackend()
  const redis = await startRedisServer()
  const planned = `limits:
  - name: api
    match: '* /api'
    key: header:x-api-key
    requests: 2
    window: month
    plans: { free: 5, pro: 100 }
    plan: store
`
  const env = {
    UPSTREAM_URL: url,
    REDIS_URL: redis.url,
    ADMIN_TOKEN: token,
    CONFIG_FILE: writeConfigFile(planned),
  }
  const gateway = await startGateway(env)
  const asks = await control({
    async ask() {
      const { headers } = await send(gateway.port, 'GET', '/api', { headers: { 'x-api-key': 'k-1' } })
      const [, quota] = /q=(\d+)/.exec(String(headers['ratelimit-policy'])) ?? []
      return quota
    },
  })
  expect(await runClient('page-plans.js', pageOf(gateway), [token, asks, pictures])).toEqual({
    names: ['free', 'pro'],
    quotas: ['2', '100', '2', '2'],
    redisKey: expect.stringMatching(/^sluice:1:\{h:[\w-]{22}\}:plan:header:x-api-key$/) as string,
    seen: [],
    errors: [],
  })
})

test('10,000 refusals a second take the page less than 16 ms of scripting a frame', async () => {
  const { url } = await startBackend()
  const rules = Array.from(
    { length: 60 },
    (_, index) => `  - { name: rule-${index}, match: GET /api/${index}, requests: 1, window: 1h }\n`,
  )
  const gateway = await startGateway({
    UPSTREAM_URL: url,
    CONFIG_FILE: writeConfigFile(`limits:\n${rules.join('')}`),
  })
  const stop = flood(gateway.port, 200, 10_000)
  const picture = pictures && `${pictures}/flood.png`
  const watch = async (): Promise<Record<string, number>> => {
    const seen = await runClient('page-busy.js', pageOf(gateway), ['6', ...(picture ? [picture] : [])])
    console.log(JSON.stringify(seen))
    return seen as Record<string, number>
  }
  let seen = await watch()
  // A busy machine may delay one of the page's tasks; a page that is too slow is late every time.
  for (let tries = 1; tries < 3 && (seen['maxMs'] ?? 0) >= 16; tries++) seen = await watch()
  const sent = stop()
  console.log(JSON.stringify({ sent }))
  const { maxMs, perSecondMs, tasks, clients } = seen
  expect(clients).toBeGreaterThanOrEqual(20)
  // The page received updates and rendered them.
  expect(tasks).toBeGreaterThan(10)
  expect(maxMs).toBeLessThan(16)
  expect(perSecondMs).toBeLessThan(100)
})

/**
 * Sends a number of pipelined requests a second from as many clients. Each connection ends after some requests and is replaced. Returns a
 * function that stops the load and returns the number of requests.
 */
function flood(port: number, clients: number, perSecond: number): () => number {
  const everyMs = 100
  const each = Math.round((perSecond * everyMs) / 1000 / clients)
  const sockets = new Map<number, Socket>()
  const open = (client: number): Socket => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.2.${client + 1}` })
    return socket.on('error', () => undefined).resume()
  }
  let sent = 0
  const timer = setInterval(() => {
    for (let client = 0; client < clients; client++) {
      let socket = sockets.get(client)
      if (!socket || socket.destroyed || !socket.writable) sockets.set(client, (socket = open(client)))
      if (socket.writableLength > 0) continue
      socket.write(`GET /api/${client % 60} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(each))
      sent += each
    }
  }, everyMs)
  const stop = (): number => {
    clearInterval(timer)
    for (const socket of sockets.values()) socket.destroy()
    return sent
  }
  onTestFinished(() => void stop())
  return stop
}

test('a page of another site can neither read, nor act, nor show the page in a frame', async () => {
  const { url } = await startBackend()
  const env = { UPSTREAM_URL: url, CONFIG_FILE: writeConfigFile(table) }
  const [local, guarded] = [await startGateway(env), await startGateway({ ...env, ADMIN_TOKEN: token })]
  const seen = await runClient('page-cross-site.js', pageOf(local), [pageOf(guarded).origin])
  // The browser sends a preflight for requests that a page may not send, and shows the page no response.
  const nothing = ['blocked', 'opaque', 'blocked', 'opaque', 'opaque', 'opaque']
  const attempts = ['evil.example', '127.0.0.1', 'localhost'].flatMap((host) =>
    ['without', 'with'].map((which) => [`${host}, ${which} a token`, nothing]),
  )
  expect(seen).toEqual({
    attempts: Object.fromEntries(attempts) as object,
    forms: [403, 401],
    rebound: [403, 403, 403, 403, 401, 401, 401, 401],
    framed: [0, 0],
    own: [200, 200],
  })
  const headers = { authorization: `Bearer ${token}` }
  for (const gateway of [local, guarded])
    expect((await askOperator(gateway, 'GET', '/api/bans', undefined, headers)).body).toEqual({
      total: 0,
      bans: [],
    })
})
