import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { resolvingWith, startDnsServer } from '../support/network/dns-server.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { freePort } from '../support/network/ports.ts'
import { spawnNode, type NodeProcess } from '../support/gateway/process.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

/*
 * One of three servers is killed, hangs, becomes slow or moves while clients send requests continuously. After two seconds at the latest,
 * no idempotent request fails. Before that, most requests that fail are sent to another server, too.
 */

type Server = { readonly name: string; readonly url: string; readonly process: NodeProcess }
type Outcome = {
  readonly atMs: number
  readonly tookMs: number
  readonly status: number
  readonly body: string
}

async function startServer(name: string, host = '127.0.0.1', port = 0): Promise<Server> {
  const process = spawnNode('test/support/network/named-server-process.ts', {
    NAME: name,
    HOST: host,
    PORT: String(port),
  })
  const [, bound] = await process.waitForLine(/^port (\d+)$/m)
  return { name, url: `http://${host}:${bound}`, process }
}

/** Clients that send one request after another, and the outcome of each since `mark`. */
function startClients({ send }: HostedGateway): {
  mark(): void
  readonly outcomes: readonly Outcome[]
  end(): Promise<void>
} {
  const outcomes: Outcome[] = []
  let isOver = false
  let markedMs = 0
  const ask = async (): Promise<void> => {
    while (!isOver) {
      const startedMs = performance.now()
      const { status, body } = await send('GET', '/').catch((error: unknown) => ({
        status: 0,
        body: String(error),
      }))
      const endedMs = performance.now()
      outcomes.push({ atMs: endedMs - markedMs, tookMs: endedMs - startedMs, status, body })
      await sleep(10)
    }
  }
  const clients = Array.from({ length: 8 }, ask)
  return {
    outcomes,
    mark() {
      outcomes.length = 0
      markedMs = performance.now()
    },
    async end() {
      isOver = true
      await Promise.all(clients)
    },
  }
}

const failed = (outcomes: readonly Outcome[]): readonly Outcome[] =>
  outcomes.filter(({ status }) => status !== 200)
const namesIn = (outcomes: readonly Outcome[]): string[] =>
  [...new Set(outcomes.map(({ body }) => body))].sort()

/** Lets something happen to the first of three servers, while clients go on for five seconds. */
async function underLoad(
  happens: (server: Server) => unknown,
  { health = '', ...env }: { readonly health?: string; readonly [name: string]: string } = {},
): Promise<{ readonly early: readonly Outcome[]; readonly late: readonly Outcome[] }> {
  const [a, b, c] = await Promise.all([startServer('a'), startServer('b'), startServer('c')])
  const urls = [a, b, c].map(({ url }) => url).join(', ')
  const gateway = await startHosted({
    CONFIG_FILE: writeConfigFile(`routes: [{ name: r, upstream: [${urls}]${health} }]`),
    RATE_LIMITING_DISABLED: '1',
    UPSTREAM_TIMEOUT: '1s',
    ...env,
  })
  const clients = startClients(gateway)
  await eventually('all servers answer', () => expect(namesIn(clients.outcomes)).toEqual(['a', 'b', 'c']))
  clients.mark()
  await happens(a)
  await sleep(5_000)
  await clients.end()
  const { outcomes } = clients
  const late = outcomes.filter(({ atMs }) => atMs > 2_000)
  expect(late.length).toBeGreaterThan(100)
  return { early: outcomes.filter(({ atMs }) => atMs <= 2_000), late }
}

const withHealth = ', health: { path: /healthz, every: 300ms, fails: 2 }'

describe.each([
  ['by requests alone', {}],
  ['with health checks', { health: withHealth }],
  ['with two workers', { health: withHealth, WORKERS: '2' }],
])('found out %s:', (_, settings) => {
  test('a server that is killed', async () => {
    const { early, late } = await underLoad(({ process }) => process.stop('SIGKILL'), settings)
    expect(failed([...early, ...late])).toEqual([])
    expect(namesIn(late)).toEqual(['b', 'c'])
  })

  test('a server that hangs: it accepts connections and answers nothing', async () => {
    const { early, late } = await underLoad(({ process }) => process.child.kill('SIGSTOP'), settings)
    expect(failed([...early, ...late])).toEqual([])
    expect(namesIn(late)).toEqual(['b', 'c'])
  })

  test('a server that becomes slow gets less', async () => {
    const { early, late } = await underLoad(
      ({ url }) => fetch(`${url}/delay?ms=400`, { method: 'POST' }),
      settings,
    )
    expect(failed([...early, ...late])).toEqual([])
    const slow = late.filter(({ body }) => body === 'a')
    expect(slow.length).toBeLessThan(late.length / 5)
  })
})

test('a server that moves to another address, as DNS says', async () => {
  const port = await freePort()
  const [a] = await Promise.all([2, 3, 4].map((last) => startServer(`${last}`, `127.0.0.${last}`, port)))
  const dns = await startDnsServer(['127.0.0.2', '127.0.0.3', '127.0.0.4'], 1)
  const gateway = await startHosted({
    CONFIG_FILE: writeConfigFile(`routes: [{ name: r, upstream: http://app.test:${port} }]`),
    RATE_LIMITING_DISABLED: '1',
    ...resolvingWith(dns),
  })
  const clients = startClients(gateway)
  await eventually('the sound servers answer, and no other', () =>
    expect(namesIn(clients.outcomes)).toEqual(['2', '3', '4']),
  )
  await startServer('5', '127.0.0.5', port)
  clients.mark()
  dns.addresses = ['127.0.0.3', '127.0.0.4', '127.0.0.5']
  await a?.process.stop('SIGKILL')
  await sleep(4_000)
  await clients.end()
  expect(failed(clients.outcomes)).toEqual([])
  // The TTL is a second.
  expect(namesIn(clients.outcomes.filter(({ atMs }) => atMs > 2_000))).toEqual(['3', '4', '5'])
  expect(dns.asked()).toBeGreaterThan(3)
})

test('names that now lead to another machine are followed while clients ask', async () => {
  const port = await freePort()
  const [before] = await Promise.all([
    startServer('2', '127.0.0.2', port),
    startServer('3', '127.0.0.3', port),
  ])
  await startServer('4', '127.0.0.4', port)
  const dns = await startDnsServer(['127.0.0.2', '127.0.0.3'], 1)
  const gateway = await startHosted({
    UPSTREAM_URL: `http://app.test:${port}`,
    RATE_LIMITING_DISABLED: '1',
    ...resolvingWith(dns),
  })
  const clients = startClients(gateway)
  await eventually('the servers that are left answer, and no other', () =>
    expect(namesIn(clients.outcomes)).toEqual(['2', '3']),
  )
  clients.mark()
  dns.addresses = ['127.0.0.4']
  await sleep(2_000)
  await before.process.stop('SIGKILL')
  await sleep(1_000)
  await clients.end()
  expect(failed(clients.outcomes)).toEqual([])
  expect(namesIn(clients.outcomes.filter(({ atMs }) => atMs > 2_000))).toEqual(['4'])
})
