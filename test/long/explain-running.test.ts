import { createServer, type Server } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createLog } from '../../shared/log.ts'
import { composeAdmin } from '../../proxy/app/admin.ts'
import { Reloader } from '../../proxy/app/reload/reloader.ts'
import { composeServing } from '../../proxy/app/serving/compose.ts'
import type { GatewaySettings } from '../../proxy/config/settings.ts'
import { send } from '../support/gateway/gateway.ts'
import {
  file,
  headOf,
  loadTable,
  plainRequest,
  request,
  type RandomRequest,
} from '../support/random/random-requests.ts'
import { refusalsCounted } from '../support/limiter/refusals-counted.ts'
import { runs } from '../support/random/runs.ts'

/** The number of steps for each table: requests, and now and then an operator's action. */
const STEPS = 46
/** The number of tables. A fifth of the steps are not requests, and some requests cannot be explained. */
const TABLES = runs(300)
const isLong = process.env['PROPERTY_RUNS'] === 'all'

const log = createLog('test', 'silent')
let backend: Server
let backendUrl = ''
/** The last request as the backend received it; undefined if it did not. */
let forwarded: { readonly path: string; readonly client: unknown } | undefined

beforeAll(async () => {
  backend = createServer(({ url = '', headers }, response) => {
    forwarded = { path: url.split('?', 1)[0] ?? '', client: headers['x-real-ip'] }
    response.end('ok')
  })
  await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve))
  backendUrl = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`
})

afterAll(() => {
  backend.close()
  backend.closeAllConnections()
})

/** Everything in which rules differ besides their match. The windows are so long that none ends during a test. */
const counting = fc.record({
  algorithm: fc.constantFrom('fixed', 'sliding', 'token-bucket'),
  window: fc.constant('30d'),
  requests: fc.integer({ min: 1, max: 4 }),
  ban: fc.option(
    fc.record({
      after: fc.integer({ min: 1, max: 3 }),
      for: fc.constant('1h'),
      scope: fc.constantFrom('rule', 'all'),
    }),
    { nil: undefined, freq: 3 },
  ),
})
const table = fc.tuple(file, fc.array(counting, { minLength: 8, maxLength: 8 })).map(([written, each]) => ({
  ...written,
  limits: written.limits.map((rule, at) => ({ ...rule, ...each[at] })),
}))

/** Clients that are mostly those of the requests. */
const client = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom<unknown>({ ip: '127.0.0.1' }, { ip: '127.0.0.2' }, { ip: '127.0.0.9' }),
  },
  fc.constantFrom<unknown>(
    { ip: '192.0.2.1' },
    { 'header:x-key': 'secret' },
    { 'query:user': '1' },
    { 'cookie:sid': '1' },
  ),
)
const policy = fc.constantFrom('r0', 'r0', 'r1', 'r2')
const operation = fc.oneof(
  fc.record({
    path: fc.constant('/api/clients/ban'),
    body: fc.record(
      { client, for: fc.constant('1h'), policy },
      { requiredKeys: ['client', 'for'], noNullPrototype: true },
    ),
  }),
  fc.record({ path: fc.constant('/api/clients/unban'), body: fc.record({ client }) }),
  fc.record({ path: fc.constant('/api/clients/reset'), body: fc.record({ client }) }),
  fc.record({
    path: fc.constant('/api/clients/override'),
    body: fc.record({ policy, client, requests: fc.integer({ min: 1, max: 9 }), for: fc.constant('1h') }),
  }),
)
const anyRequest: fc.Arbitrary<RandomRequest> = fc.oneof(
  { weight: 3, arbitrary: plainRequest },
  { weight: 1, arbitrary: request },
)
const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: anyRequest.map((asked) => ({ asked })) },
    { weight: 1, arbitrary: operation.map((operated) => ({ operated })) },
  ),
  { minLength: STEPS, maxLength: STEPS },
)

/** Starts a gateway in this process, with its listeners, counters in memory, and the API of its page. */
async function start(settings: GatewaySettings) {
  const serving = await composeServing(settings, log)
  const reloader = new Reloader({
    running: settings,
    source: {
      written: settings,
      load: () => Promise.resolve({ settings, warnings: [] }),
      watch: () => () => undefined,
      signature: () => '',
    },
    prepare: () => Promise.reject(new Error('no other table')),
    changed: () => undefined,
    log,
  })
  const admin = composeAdmin(settings, log, {
    clients: serving.clients,
    reloader,
    readHealth: () => serving.health.read(),
    readActivities: () => Promise.resolve({ all: [], answered: 0 }),
    readMetrics: () => Promise.resolve(''),
  })
  const adminPort = await admin.listen()
  const port = (await serving.listen({ port: 0, host: '127.0.0.1' }))?.port ?? 0
  return {
    ask: async (path: string, body: unknown): Promise<unknown> => {
      const headers = { 'content-type': 'application/json' }
      const reply = await send(adminPort, 'POST', path, { headers, body: JSON.stringify(body) })
      return JSON.parse(reply.body)
    },
    send: (head: string, from: string) => exchange(port, head, from),
    async close() {
      await serving.close()
      await admin.close()
    },
  }
}

type Answer = { readonly status: number; readonly left: readonly (readonly [rule: string, left: number])[] }

/** Sends a request. Resolves with the final status and the limits in the response. */
function exchange(port: number, head: string, localAddress: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect({ host: '127.0.0.1', port, localAddress }, () => socket.write(head, 'latin1'))
    socket.on('error', reject)
    socket.on('data', (bytes) => {
      text = (text + bytes.toString('latin1')).replace(/^HTTP\/1\.1 10[023] [^]*?\r\n\r\n/, '')
      if (!text.includes('\r\n\r\n')) return
      socket.destroy()
      const field = /^ratelimit: (.*)$/im.exec(text)?.[1] ?? ''
      const left = Array.from(
        field.matchAll(/"(r\d)";r=(\d+)/g),
        ([, rule = '', r]) => [rule, Number(r)] as const,
      )
      resolve({ status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]), left })
    })
    socket.once('close', () => reject(new Error(`closed without a response: ${head}`)))
  })
}

type State = {
  readonly client: unknown
  readonly limit: number
  readonly used: number
  readonly remaining: number
}
type Explained = {
  readonly outcome: string
  readonly status?: number
  readonly refusedBy: string | null
  readonly path: string
  readonly client: { readonly address: string }
  readonly rules: readonly {
    readonly name: string
    readonly counts: boolean
    readonly mode: string
    readonly states: readonly State[]
  }[]
}

/** The request in the form that the API takes, with lines of the same name in order. */
function questionOf({ asked: [method, target], hosts, lines, from }: RandomRequest): object {
  const headers: Record<string, string[]> = {}
  for (const line of [...hosts.map((each) => `Host: ${each}`), ...lines].flatMap((each) =>
    each.split('\r\n'),
  )) {
    const colon = line.indexOf(':')
    ;(headers[line.slice(0, colon).toLowerCase()] ??= []).push(line.slice(colon + 1).trim())
  }
  return { method, target, ip: from, headers }
}

const countedIn = ({ rules }: Explained) => rules.filter(({ counts }) => counts)

/** The remaining quotas after the request: one less, unless the request is refused, or unless a rule in shadow mode has none left. */
function expectedLeft(before: Explained): (readonly [rule: string, left: number])[] {
  const isRefused = before.refusedBy !== null
  return countedIn(before).flatMap(({ name, mode, states }) =>
    states.map(({ remaining }) => {
      const isOver = mode === 'shadow' && remaining === 0
      return [name, isRefused || isOver ? remaining : remaining - 1] as const
    }),
  )
}

/** The remaining quotas that a response must have. If a rule counts several clients for a request, the smallest of their quotas. */
function leastOf(left: readonly (readonly [rule: string, left: number])[]) {
  const rules = [...new Set(left.map(([rule]) => rule))]
  const ofRule = (rule: string) => left.filter(([name]) => name === rule).map(([, each]) => each)
  return rules.map((rule) => [rule, Math.min(...ofRule(rule))] as const)
}

const leftIn = (explained: Explained) =>
  countedIn(explained).flatMap(({ name, states }) =>
    states.map(({ remaining }) => [name, remaining] as const),
  )

test(
  'for random requests, tables, bans and overrides, POST /api/explain predicts what the gateway does',
  { timeout: 3_600_000 },
  async () => {
    const seen = new Set<string>()
    await fc.assert(
      fc.asyncProperty(table, steps, async (written, all) => {
        const settings = loadTable(written, backendUrl)
        fc.pre(settings !== undefined)
        const gateway = await start(settings)
        try {
          for (const step of all) {
            if ('operated' in step) {
              // The API refuses actions on clients that the table does not have.
              await gateway.ask(step.operated.path, step.operated.body)
              continue
            }
            const { asked } = step
            // Without Host, the explanation would be for the backend's host.
            if (asked.hosts.length === 0) continue
            const head = headOf(asked)
            const question = questionOf(asked)
            const before = (await gateway.ask('/api/explain', question)) as Explained
            forwarded = undefined
            const { status, left } = await gateway.send(head, asked.from)
            await refusalsCounted()
            const about = `${head}${JSON.stringify(before)}`
            const isRefused = before.refusedBy !== null
            seen.add(before.outcome === 'limited' && isRefused ? 'refused' : before.outcome)
            if (before.status !== undefined || isRefused) {
              expect(status, about).toBe(before.status ?? 429)
              expect(forwarded, about).toBeUndefined()
            } else {
              expect(status, about).toBe(200)
              expect(forwarded, about).toEqual({ path: before.path, client: before.client.address })
            }
            if (before.outcome !== 'limited') continue
            const expected = expectedLeft(before)
            const enforced = new Set(
              countedIn(before).flatMap(({ name, mode }) => (mode === 'enforce' ? [name] : [])),
            )
            expect(left, about).toEqual(leastOf(expected.filter(([name]) => enforced.has(name))))
            const after = (await gateway.ask('/api/explain', question)) as Explained
            // If this was the last refusal before a ban, the client is banned now.
            if (after.outcome === 'limited') expect(leftIn(after), about).toEqual(expected)
          }
        } finally {
          await gateway.close()
        }
      }),
      { numRuns: TABLES, endOnFailure: true },
    )
    // Each outcome has been compared at least once.
    const outcomes = ['answered', 'banned', 'denied', 'forwarded', 'limited', 'refused', 'rejected']
    if (isLong) expect([...seen].toSorted()).toEqual(outcomes)
  },
)
