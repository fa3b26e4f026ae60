import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, expect, test } from 'vitest'
import { connectionOpener } from '../../../../proxy/http/upstream/open-connection.ts'
import type { UpstreamChannel, UpstreamExchange } from '../../../../proxy/http/upstream/exchange.ts'
import { UpstreamPool } from '../../../../proxy/http/upstream/pool.ts'
import { createLeastConnections } from '../../../../proxy/http/upstream/servers/balancer.ts'
import { ResolvedGroup } from '../../../../proxy/http/upstream/servers/resolved-group.ts'
import { eventually } from '../../../support/wait/eventually.ts'
import { seededRandom } from '../../../support/random/seeded-random.ts'
import { testSeed } from '../../../support/random/seed.ts'
import { upstreamRequest } from '../../../support/http/upstream-request.ts'

const random = seededRandom(testSeed())

const now = (): number => performance.now()
const closers: (() => void)[] = []
afterAll(() => {
  for (const close of closers) close()
})

/** Servers on one port at several loopback addresses. Each answers with its address. */
async function startOn(addresses: readonly string[]): Promise<number> {
  let port = 0
  for (const address of addresses) {
    const server: HttpServer = createServer((_, response) => response.end(address))
    await new Promise<void>((resolve) => server.listen(port, address, resolve))
    port = (server.address() as AddressInfo).port
    closers.push(() => server.close().closeAllConnections())
  }
  return port
}

function ask(group: ResolvedGroup): Promise<string> {
  return new Promise((resolve, reject) => {
    let body = ''
    const nothing = (): void => undefined
    const exchange: UpstreamExchange = {
      method: 'GET',
      client: 'c',
      isCancelled: false,
      headBytes: 0,
      isBodyPending: false,
      isRetryable: true,
      upgrades: false,
      start(connection: UpstreamChannel) {
        connection.writeHead(upstreamRequest())
      },
      onInterimResponse: nothing,
      onHead: nothing,
      onBody: (chunk) => (body += chunk.toString()),
      onReadEnd: nothing,
      onTrailers: nothing,
      onEnd: () => resolve(body),
      onUpgrade: nothing,
      onFailure: reject,
    }
    group.send(exchange)
  })
}

function createGroup(port: number, addresses: () => readonly string[]): ResolvedGroup {
  const group = new ResolvedGroup({
    urls: [new URL(`http://localhost:${port}`)],
    pick: createLeastConnections(random),
    lookUp: () => Promise.resolve({ addresses: addresses(), forMs: 20 }),
    now,
    open: ({ url, address }) =>
      new UpstreamPool({
        open: connectionOpener(url, { address }),
        connectMs: 5_000,
        firstByteMs: 5_000,
        idleMs: 5_000,
        maxConnections: 10,
        maxStreams: 10,
        maxQueued: 10,
        queueMs: 5_000,
        maxAgeMs: 30_000,
        maxRequests: 0,
        now,
        random,
      }),
  })
  closers.push(() => group.destroy())
  return group
}

test('a name with three addresses is three servers', async () => {
  const addresses = ['127.0.0.2', '127.0.0.3', '127.0.0.4']
  const group = createGroup(await startOn(addresses), () => addresses)
  group.start()
  await eventually('there are three servers', () => group.servers.length >= 3)
  const answers: string[] = []
  for (let i = 0; i < 60; i++) answers.push(await ask(group))
  for (const address of addresses)
    expect(Math.abs(answers.filter((answer) => answer === address).length - 20)).toBeLessThanOrEqual(5)
})

test('a name that moves to other addresses is followed', async () => {
  const port = await startOn(['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5'])
  let addresses = ['127.0.0.2', '127.0.0.3']
  const group = createGroup(port, () => addresses)
  group.start()
  await eventually('there are two servers', () => group.servers.length >= 2)
  expect(['127.0.0.2', '127.0.0.3']).toContain(await ask(group))
  const [before] = group.servers
  addresses = ['127.0.0.4', '127.0.0.5']
  await eventually('the first server is gone', () => !(before && group.servers.includes(before)))
  expect(['127.0.0.4', '127.0.0.5']).toContain(await ask(group))
})

test('a name that does not exist for a while has no addresses meanwhile, and requests in flight are finished', async () => {
  const port = await startOn(['127.0.0.2', '127.0.0.3'])
  let addresses: readonly string[] = ['127.0.0.2', '127.0.0.3']
  const group = createGroup(port, () => addresses)
  group.start()
  await eventually('there are two servers', () => group.servers.length === 2)
  const inFlight = ask(group)
  addresses = []
  await eventually('there is a single server', () => group.servers.length === 1)
  expect(group.servers[0]?.place.address).toBeUndefined()
  expect(['127.0.0.2', '127.0.0.3']).toContain(await inFlight)
  addresses = ['127.0.0.2', '127.0.0.3']
  await eventually('there are two servers again', () => group.servers.length === 2)
  expect(['127.0.0.2', '127.0.0.3']).toContain(await ask(group))
})
