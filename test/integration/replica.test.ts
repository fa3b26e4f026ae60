import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { LEASE_MS } from '../../proxy/limits/algorithms/concurrency/concurrency.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce, reservationsOf } from '../support/limiter/decisions.ts'
import { openAnsweringLimiter, openRedis } from '../support/redis/redis-limiters.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import { eventually } from '../support/wait/eventually.ts'

const login = makePolicy('login', 5, 60_000)
const exports = makePolicy('exports', 3, LEASE_MS, { algorithm: 'concurrency' })

/** Starts an address that leads new connections to whichever server is the master, as a DNS name or a virtual address does. */
async function startAddress(port: number): Promise<{ url: string; lead: (toPort: number) => void }> {
  let target = port
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    const other = connect(target, '127.0.0.1')
    for (const [from, to] of [
      [socket, other],
      [other, socket],
    ] as const) {
      sockets.add(from)
      from.on('error', () => to.destroy()).pipe(to)
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    sockets.forEach((socket) => socket.destroy())
  })
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lead: (toPort) => void (target = toPort),
  }
}

/** Collects the names of Node's warnings from now on. Node warns of a leak if a socket gets more than ten listeners for an event. */
function collectWarnings(): readonly string[] {
  const names: string[] = []
  const onWarning = ({ name }: Error): void => void names.push(name)
  process.on('warning', onWarning)
  onTestFinished(() => void process.off('warning', onWarning))
  return names
}

test('the gateway leaves a server that has become a replica once its address leads to the new master', async () => {
  const warnings = collectWarnings()
  const [old, next] = await Promise.all([startRedisServer(), startRedisServer()])
  const operators = [openRedis(old.url), openRedis(next.url)] as const
  const address = await startAddress(old.port)
  const limiter = await openAnsweringLimiter(address.url)
  expect(countAllowed(await decideAtOnce([limiter], 9, chargeAll(newClient(), [login])))).toBe(5)

  const connection = async (): Promise<string> => {
    const clients = String(await operators[0].client('LIST'))
    return /id=(\d+) [^\n]* name=sluice /.exec(clients)?.[1] ?? 'none'
  }
  const firstConnection = await connection()
  await operators[0].replicaof('127.0.0.1', next.port)
  // Local counters decide, because a replica cannot count.
  const client = newClient()
  for (let asked = 0; asked < 9; asked++) await limiter.decide(chargeAll(client, [login]))
  await eventually('Redis is given up', () => limiter.storeState() === 'unavailable')
  expect(limiter.logLines.map(({ reason = '' }) => reason)).toContainEqual(expect.stringMatching(/^READONLY/))

  // The gateway looks for the new master, and finds the old one again.
  await eventually(
    'it is connected anew',
    async () => ![firstConnection, 'none'].includes(await connection()),
  )
  await eventually('it is connected again', () => limiter.connection.client.status === 'ready')
  address.lead(next.port)
  await eventually('the new master decides', () => limiter.storeState() === 'available')
  await eventually('the new master has the count', async () =>
    expect(await operators[1].get(`sluice:1:{${client}}:login:60000`)).toBe('5'),
  )
  expect(await limiter.decide(chargeAll(client, [login]))).toMatchObject({ outcome: 'refused' })
  // The gateway gave up the connection to the replica once, no matter how many replies said so.
  expect(warnings).toEqual([])
})

/* As in a failover by Sentinel on request: the replica is promoted a second before the gateways leave the old master. */
test('a replica that has become the master learns the requests in flight and the ends that it has missed', async () => {
  const old = await startRedisServer({ args: ['--repl-diskless-sync-delay', '0'] })
  const next = await startRedisServer({ args: ['--replicaof', '127.0.0.1', String(old.port)] })
  const operators = [openRedis(old.url), openRedis(next.url)] as const
  const address = await startAddress(old.port)
  const limiter = await openAnsweringLimiter(address.url)
  const client = newClient()
  const charges = chargeAll(client, [exports])
  const readNames = (operator: (typeof operators)[number]): Promise<string[]> =>
    operator.zrange(`sluice:1:{${client}}:exports:in-flight`, '0', '-1')
  const ended = (await decideAtOnce([limiter], 3, charges)).flatMap(reservationsOf)
  await eventually('the replica knows them', async () =>
    expect(await readNames(operators[1])).toHaveLength(3),
  )

  await operators[1].replicaof('NO', 'ONE')
  for (const reservation of ended) limiter.settle(reservation, 0)
  await eventually('the old master has ended them', async () =>
    expect(await readNames(operators[0])).toEqual([]),
  )
  const [begun] = reservationsOf(await limiter.decide(charges))
  address.lead(next.port)
  await operators[0].call('CLIENT', 'KILL', 'TYPE', 'normal')

  await eventually(
    'the new master knows who is in flight',
    async () => expect(await readNames(operators[1])).toEqual([begun?.ticket]),
    // It forgets the others itself after 15 seconds.
    { endMs: 10_000 },
  )
  expect(countAllowed(await decideAtOnce([limiter], 5, charges))).toBe(2)
})
