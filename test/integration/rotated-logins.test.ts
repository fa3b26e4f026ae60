import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import { beforeAll, describe, expect, test } from 'vitest'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { startBackend, type Backend } from '../support/http/backend.ts'
import { startRedisCluster } from '../support/redis/redis-cluster.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { openAnsweringLimiter, openRedis } from '../support/redis/redis-limiters.ts'
import { startSentinel } from '../support/redis/redis-sentinel.ts'
import { isSince } from '../support/redis/redis-version.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

/*
 * Redis logins that change while gateways run. Redis keeps connections that logged in earlier. Each new connection needs the new login,
 * which the gateway reads from the file that REDIS_URL_FILE names.
 */

let backend: Backend

beforeAll(async () => {
  backend = await startBackend()
})

/** A deployment of Redis with a user `sluice`: an operator's connection to each server, and the URL without a login. */
type Place = {
  readonly servers: readonly Redis[]
  readonly url: string
  /** Set if the sentinels have a password of their own. */
  readonly sentinel?: Redis
}

const places: Readonly<Record<string, () => Promise<Place>>> = {
  'one server': async () => {
    const { url } = await startRedisServer()
    return { servers: [openRedis(url)], url }
  },
  Sentinel: async () => {
    const master = await startRedisServer()
    const { port } = await startSentinel({ masterPort: master.port, lines: ['requirepass first'] })
    return {
      servers: [openRedis(master.url)],
      url: `redis+sentinel://127.0.0.1:${port}/main`,
      sentinel: openRedis(`redis://:first@127.0.0.1:${port}`),
    }
  },
  'a cluster': async () => {
    const cluster = await startRedisCluster(2, 1)
    return { servers: cluster.nodes.map(({ operator }) => operator), url: cluster.url }
  },
}

async function setUser({ servers }: Place, ...words: string[]): Promise<void> {
  for (const server of servers) await server.call('ACL', 'SETUSER', ...words)
}

/** Ends the gateways' connections, as a restart or a failover of Redis does. */
async function disconnectAll({ servers, sentinel }: Place): Promise<void> {
  for (const server of servers) await server.call('CLIENT', 'KILL', 'USER', 'sluice')
  await sentinel?.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
}

type Rotated = {
  readonly gateway: HostedGateway
  readonly place: Place
  readonly urlFile: string
  /** Writes the login to the file, as an operator does. */
  readonly writeLogin: (login: string, sentinelPassword?: string) => void
}

async function startWithLogin(kind: string): Promise<Rotated> {
  const place = await (places[kind] ?? expect.unreachable())()
  await setUser(place, 'sluice', 'on', '>first', '+@all', '~*')
  const folder = makeTemporaryDirectory()
  const urlFile = join(folder, 'url')
  const writeLogin = (login: string, sentinelPassword = 'first'): void => {
    const atSentinels = place.sentinel ? `?sentinelPassword=${sentinelPassword}` : ''
    writeFileSync(urlFile, `${place.url.replace('://', `://${login}@`)}${atSentinels}\n`)
  }
  writeLogin('sluice:first')
  const limits = join(folder, 'sluice.yaml')
  const rule = '{ name: all, match: "* /*", requests: 100000, window: 1h, onStoreError: closed }'
  writeFileSync(limits, `limits: [${rule}]\n`)
  const gateway = await startHosted({
    UPSTREAM_URL: backend.url,
    CONFIG_FILE: limits,
    REDIS_URL_FILE: urlFile,
    STORE_TIMEOUT: '2s',
  })
  await untilCounted(gateway)
  return { gateway, place, urlFile, writeLogin }
}

async function isCounted(gateway: HostedGateway): Promise<boolean> {
  return (await gateway.send('GET', '/')).status === 200
}

function untilCounted(gateway: HostedGateway): Promise<void> {
  return eventually('Redis decides', () => isCounted(gateway))
}

describe.each(Object.keys(places))('a login that is changed, with %s,', (kind) => {
  test('a changed login is used for the next connection after the file has it', async () => {
    const { gateway, place, writeLogin } = await startWithLogin(kind)
    await setUser(place, 'sluice', 'resetpass', '>second')
    await disconnectAll(place)
    await eventually('the old login is refused', () => gateway.output().includes('"reason":"WRONGPASS'))
    writeLogin('sluice:second')
    await untilCounted(gateway)
    expect(gateway.output()).not.toMatch(/first|second/)
  })

  test('goes unnoticed by a connection that Redis keeps', async () => {
    const { gateway, place, writeLogin } = await startWithLogin(kind)
    const before = gateway.output()
    await setUser(place, 'sluice', 'resetpass', '>second')
    writeLogin('sluice:second')
    for (let i = 0; i < 20; i++) expect(await isCounted(gateway)).toBe(true)
    expect(gateway.output().slice(before.length)).not.toContain('"level":40')
  })

  test('may be another user, while the one before still is connected', async () => {
    const { gateway, place, writeLogin } = await startWithLogin(kind)
    await setUser(place, 'next', 'on', '>second', '+@all', '~*')
    writeLogin('next:second')
    await setUser(place, 'sluice', '-@all')
    await untilCounted(gateway)
  })
})

// Sentinel has supported users since Redis 6.2.
test.runIf(isSince(6.2))(
  'a password of sentinels that is changed is used for the next connection to one',
  async () => {
    const { gateway, place, writeLogin } = await startWithLogin('Sentinel')
    const { sentinel } = place
    if (!sentinel) return expect.unreachable()
    const listens = async (): Promise<boolean> =>
      String(await sentinel.call('CLIENT', 'LIST')).includes(' sub=1 ')
    await eventually('it listens for failovers', listens)
    await sentinel.call('ACL', 'SETUSER', 'default', 'resetpass', '>second')
    await sentinel.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await eventually('it is refused', async () => {
      const log = (await sentinel.call('ACL', 'LOG')) as unknown[]
      expect(log.length).toBeGreaterThan(0)
    })
    expect(await listens()).toBe(false)
    writeLogin('sluice:first', 'second')
    await eventually('it listens again', listens)
    await disconnectAll(place)
    await untilCounted(gateway)
  },
)

test.runIf(isSince(6.2))('a connection that is not logged in any more is given up', async () => {
  const server = await startRedisServer({ args: ['--requirepass', 'secret'] })
  const limiter = await openAnsweringLimiter(server.url.replace('://', '://:secret@'))
  const { client } = limiter.connection
  const before = await client.client('ID')
  await client.call('RESET')
  const policy = makePolicy('login', 5, 60_000)
  await eventually('Redis decides again', async () => {
    await limiter.decide(chargeAll(newClient(), [policy]))
    expect(limiter.storeState()).toBe('available')
    expect(await client.client('ID')).not.toBe(before)
  })
})

test.each([
  ['is no URL', 'sluice:pass/word@', 'the file does not contain a Redis URL'],
  ['names another Redis', 'redis://sluice:pass%2Fword@192.0.2.1', 'another Redis needs a restart'],
])('a file that %s does not change the login, and the log says so once', async (_, text, reason) => {
  const { gateway, place, urlFile } = await startWithLogin('one server')
  writeFileSync(urlFile, text)
  for (let i = 0; i < 2; i++) {
    await disconnectAll(place)
    await eventually('the connection is made again', async () =>
      expect(await place.servers[0]?.call('CLIENT', 'LIST')).toContain('user=sluice'),
    )
  }
  await untilCounted(gateway)
  const lines = gateway
    .output()
    .split('\n')
    .filter((line) => line.includes(reason))
  expect(lines).toHaveLength(1)
  expect(gateway.output()).not.toMatch(/pass|word@/)
})
