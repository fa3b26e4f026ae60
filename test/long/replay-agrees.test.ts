import { createHash, randomUUID } from 'node:crypto'
import { Agent, request as httpRequest } from 'node:http'
import { afterEach, expect, test, vi } from 'vitest'
import { createLog } from '../../shared/log.ts'
import { counterOptions } from '../../proxy/app/counting.ts'
import { composeServing } from '../../proxy/app/serving/compose.ts'
import { lineReader } from '../../proxy/cli/replay/logs/formats.ts'
import { readExcluded } from '../../proxy/cli/replay/excluded.ts'
import { simulate } from '../../proxy/cli/replay/simulation/simulation.ts'
import { readListsOf } from '../../proxy/cli/settings/read-lists.ts'
import type { Outcome } from '../../proxy/cli/replay/simulation/tally.ts'
import { createClientTable } from '../../proxy/limits/clients/client-table.ts'
import type { GatewaySettings } from '../../proxy/config/settings.ts'
import { createEmbeddedLimiter } from '../../proxy/limits/store/create-limiter.ts'
import { startBackend } from '../support/http/backend.ts'
import { refusalsCounted } from '../support/limiter/refusals-counted.ts'
import { loadWithFile } from '../support/gateway/settings.ts'

const REQUESTS = 20_000
const sha256 = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`

// The library uses a timer to forget how often a client was banned, and the clock below does not drive timers. So that takes an hour here.
const table = `trustedProxies: [127.0.0.1]
allowList: [{ ip: 10.0.0.1 }]
denyList: [{ ip: 10.0.0.2 }]
limits:
  - { name: login, match: POST /login, requests: 4, window: 1m, ban: { after: 3, for: 30s, max: 1h } }
  - { name: everywhere, match: GET /secret, requests: 2, window: 30s, ban: { after: 3, for: 20s, max: 20s, scope: all } }
  - { name: failed, match: POST /login, requests: 3, window: 2m, countStatus: 401 }
  - { name: sliding, match: 'GET /s/*', requests: 3, window: 1m, algorithm: sliding, overrides: [{ clients: [{ ip: 10.0.0.7 }], requests: 2 }] }
  - { name: bucket, match: GET /b, requests: 1, window: 1m, burst: 2, algorithm: token-bucket }
  - { name: key, match: '* /k/*', key: 'header:x-api-key', requests: 20, window: 1m, overrides: [{ clients: [{ 'header:x-api-key': '${sha256('gold')}' }], requests: 60 }] }
  - { name: both, match: 'GET /k/:id', key: [ip, 'path:id'], requests: 1, window: 1m }
  - { name: hosted, match: 'GET /*', hosts: app.example.com, key: global, requests: 30, window: 30s }
  - { name: trial, match: '* /*', requests: 12, window: 1m, mode: shadow, ban: { after: 1, for: 1h } }
`

/** Returns a generator with the same sequence in each run. */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** A line of Caddy's log, with everything that these rules read. */
function logLine(timeMs: number, upTo: (below: number) => number): string {
  const [method = '', uri = ''] = pick([
    ['POST', '/login'],
    ['POST', '/LOGIN/;x?a=b'],
    ['GET', '/secret'],
    ['GET', `/s/${upTo(9)}`],
    ['GET', '/b'],
    ['GET', `/k/${upTo(3)}`],
    ['PUT', '//k/./%61'],
    ['GET', '/other'],
    ['GET', '/a%00'],
    ['OPTIONS', '/k/1'],
  ])
  function pick<Value>(from: readonly Value[]): Value {
    return from[upTo(from.length)] as Value
  }
  const key = pick([undefined, 'a', 'b', 'gold'])
  return JSON.stringify({
    ts: timeMs / 1000,
    duration: 0,
    status: pick([200, 200, 401]),
    request: {
      // The minimum of two draws makes some clients far busier than others.
      remote_ip: `10.0.0.${1 + Math.min(upTo(40), upTo(40))}`,
      method,
      uri,
      host: pick(['app.example.com', 'other.example.com']),
      headers: key === undefined ? {} : { 'X-Api-Key': [key] },
    },
  })
}

/** Starts a gateway in this process, whose counters, bans and windows use the given clock. */
async function startAt(settings: GatewaySettings, now: () => number) {
  const log = createLog('test', 'silent')
  const serving = await composeServing(settings, log, {
    count(telemetry, onForget) {
      const limiter = createEmbeddedLimiter({
        ...counterOptions(settings, { log, telemetry, onForget }),
        now,
      })
      const policies = settings.rules.map(({ policy }) => policy)
      return {
        limiter,
        operations: limiter,
        clientTable: createClientTable({ policies, now, telemetry, logAddresses: true, log }, undefined),
        storeState: () => limiter.storeState(),
        useRules: () => Promise.resolve(),
        ready: () => Promise.resolve(),
        close() {
          limiter.close()
          return Promise.resolve()
        },
      }
    },
  })
  const listening = await serving.listen({ port: 0, host: '127.0.0.1' })
  return { port: listening?.port ?? 0, close: () => serving.close() }
}

afterEach(() => {
  vi.useRealTimers()
})

test(
  'a log that is replayed agrees, request by request, with a gateway that gets it as requests',
  { timeout: 600_000 },
  async () => {
    const backend = await startBackend((request, response) => {
      response.writeHead(Number(request.headers['x-status'])).end()
      request.resume()
    })
    const { settings } = loadWithFile(table, { UPSTREAM_URL: backend.url, PORT: '0', ADMIN_PORT: '0' })
    let clockMs = Date.UTC(2026, 2, 1)
    // The library that counts refusals for bans reads the machine's clock.
    vi.useFakeTimers({ toFake: ['Date'], now: clockMs })
    const gateway = await startAt(settings, () => clockMs)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const simulation = simulate(settings, {
      ...{ proxies: ['127.0.0.1/32'], defaultHost: undefined, excluded: readExcluded([]) },
      ...{ lists: readListsOf(settings).lists, geo: undefined },
    })
    const upTo = randomNumbers(7)
    const read = lineReader('auto')
    const outcomes = new Map<string, number>()

    try {
      for (let i = 0; i < REQUESTS; i++) {
        clockMs += upTo(150)
        vi.setSystemTime(clockMs)
        const line = logLine(clockMs, upTo)
        const logged = read(line)
        if (typeof logged === 'string' || 'why' in logged) throw new Error(`unread: ${line}`)
        const expected = simulation.add(logged)
        const status = await new Promise<number>((resolve, reject) => {
          const { host = '', ip, method, target, headers } = logged
          const own = { host, 'x-forwarded-for': ip, 'x-status': String(logged.status) }
          const options = { port: gateway.port, host: '127.0.0.1', agent, method, path: target }
          httpRequest({ ...options, headers: { ...headers, ...own, 'x-request-id': randomUUID() } })
            .on('response', (response) => {
              response.resume().on('end', () => resolve(response.statusCode ?? 0))
            })
            .on('error', reject)
            .end()
        })
        if (status === 429) await refusalsCounted()
        expect([i, outcomeOf(status), line]).toEqual([i, expected, line])
        outcomes.set(expected, (outcomes.get(expected) ?? 0) + 1)
      }
    } finally {
      agent.destroy()
      await gateway.close()
    }
    // Each outcome has occurred many times, and every rule has refused requests.
    const { tally } = simulation
    for (const outcome of ['passed', 'refused', 'denied', 'rejected'])
      expect(outcomes.get(outcome), outcome).toBeGreaterThan(100)
    for (const { policy, refused } of tally.rules) expect(refused, policy.name).toBeGreaterThan(20)
    expect(tally.rules.map(({ bans }) => bans > 5)).toEqual([true, true, ...Array<boolean>(7).fill(false)])
    expect(tally.banned).toBeGreaterThan(100)
  },
)

function outcomeOf(status: number): Outcome {
  if (status === 429) return 'refused'
  if (status === 403) return 'denied'
  return status === 400 ? 'rejected' : 'passed'
}
