import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend, type Backend } from '../support/http/backend.ts'
import { authorityFile, certificateFiles } from '../support/network/certificates.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { freePort } from '../support/network/ports.ts'
import { startSentinel } from '../support/redis/redis-sentinel.ts'
import { isSince } from '../support/redis/redis-version.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

/*
 * Connections to Redis over TLS, in each form of REDIS_URL, to servers that require a client certificate. A server without a trusted
 * certificate counts as unavailable: the rule's `onStoreError`, here `closed`, applies.
 */

type Name = Parameters<typeof certificateFiles>[0]

const client = certificateFiles('second')
const withPair = { cert: client.cert, key: client.key }
const trusting = { ca: authorityFile, ...withPair }

/** Options of `REDIS_URL`. */
type Options = Readonly<Record<string, string>>

let backend: Backend
let limits: string

beforeAll(async () => {
  backend = await startBackend()
  limits = join(makeTemporaryDirectory(), 'limits.yaml')
  const rules = [
    'name: once, match: GET /once, requests: 1, window: 1h, onStoreError: closed',
    'name: connected, match: GET /connected, requests: 10000, window: 1h, onStoreError: closed',
  ]
  writeFileSync(limits, `limits: [${rules.map((rule) => `{ ${rule} }`).join(', ')}]\n`)
})

/** Options of redis-server, or lines of a sentinel's configuration, that allow only TLS. */
function tlsOptions(port: number, name: Name): [string, string][] {
  const { cert, key } = certificateFiles(name)
  return [
    ['port', '0'],
    ['tls-port', String(port)],
    ['tls-cert-file', cert],
    ['tls-key-file', key],
    ['tls-ca-cert-file', authorityFile],
    ['tls-auth-clients', 'yes'],
    ['tls-replication', 'yes'],
  ]
}

/** Starts a server that speaks only TLS, and returns its port. */
async function startSecureRedis(name: Name = 'first', ...args: string[]): Promise<number> {
  const port = await freePort()
  const options = tlsOptions(port, name).flatMap(([option, value]) => [`--${option}`, value])
  await startRedisServer({ port, args: [...options, ...args] })
  return port
}

function start(url: string, options: Options): Promise<HostedGateway> {
  const query = Object.entries(options).map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
  const common = { UPSTREAM_URL: backend.url, CONFIG_FILE: limits, STORE_TIMEOUT: '2s' }
  return startHosted({ ...common, REDIS_URL: `${url}?${query.join('&')}` })
}

/** Starts a gateway, and waits until Redis decides. */
async function startConnected(url: string, options: Options): Promise<HostedGateway> {
  const gateway = await start(url, options)
  const isConnected = async (): Promise<boolean> => (await gateway.send('GET', '/connected')).status === 200
  // With dozens of other processes running, an attempt to connect may take longer than the second that the gateway allows.
  await eventually('Redis is connected to', isConnected, { endMs: 90_000 })
  return gateway
}

async function ask(gateway: HostedGateway, times: number): Promise<number[]> {
  const statuses = []
  for (let asked = 0; asked < times; asked++) statuses.push((await gateway.send('GET', '/once')).status)
  return statuses
}

/** Resolves when a log line has this reason. On a busy machine, the first line may have another reason: that connecting took too long. */
async function untilReasonLogged(gateway: HostedGateway, reason: RegExp): Promise<void> {
  const isTold = (): boolean =>
    gateway
      .output()
      .split('\n')
      .filter((line) => line.includes('cannot connect to Redis'))
      .some((line) => reason.test((JSON.parse(line) as { reason: string }).reason))
  await eventually('the log says why there is no connection', isTold)
}

describe.concurrent('over TLS, with a certificate shown and one verified,', () => {
  test.each(['127.0.0.1', 'localhost'])('one server decides, reached at %s', async (host) => {
    const url = `rediss://${host}:${await startSecureRedis()}`
    const [first, second] = await Promise.all([startConnected(url, trusting), startConnected(url, trusting)])
    expect([...(await ask(first, 1)), ...(await ask(second, 1))]).toEqual([200, 429])
  })

  test('sentinels lead to a server, with logins of their own', async () => {
    const masterPort = await startSecureRedis('first', '--requirepass', 'at Redis')
    const port = await freePort()
    const lines = tlsOptions(port, 'first').map((line) => line.join(' '))
    const logins = ['sentinel auth-pass main "at Redis"', 'requirepass "at Sentinel"']
    await startSentinel({ masterPort, port, lines: [...lines, ...logins] })
    const url = `rediss+sentinel://:at%20Redis@localhost:${port}/main`
    const gateway = await startConnected(url, { ...trusting, sentinelPassword: 'at Sentinel' })
    expect(await ask(gateway, 2)).toEqual([200, 429])

    const without = await start(url, trusting)
    expect(await ask(without, 1)).toEqual([503])
    await untilReasonLogged(without, /^sentinel localhost:\d+: NOAUTH/)
  })

  // Redis 7.0 introduced host names of nodes.
  test.runIf(isSince(7.0))(
    'a cluster whose nodes have names decides, and the names are verified',
    async () => {
      const [option, announced] = ['--cluster-announce-hostname', 'localhost']
      const byName = ['--cluster-preferred-endpoint-type', 'hostname', '--cluster-enabled', 'yes']
      const args = [option, announced, ...byName, '--tls-cluster', 'yes', '--databases', '1']
      const port = await startSecureRedis('named', ...args, '--cluster-port', String(await freePort()))
      const named = certificateFiles('named').cert
      const pair = { cert: readFileSync(client.cert), key: readFileSync(client.key) }
      const operator = new Redis({ host: 'localhost', port, tls: { ca: readFileSync(named), ...pair } })
      await operator.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383)
      await eventually('the cluster is sound', async () =>
        expect(await operator.cluster('INFO')).toContain('cluster_state:ok'),
      )
      operator.disconnect()
      const gateway = await startConnected(`rediss+cluster://localhost:${port}`, { ca: named, ...withPair })
      expect(await ask(gateway, 2)).toEqual([200, 429])
    },
  )
})

test('a certificate and key that are renewed are shown to the next connection', async () => {
  const [expired, renewed] = [certificateFiles('named'), certificateFiles('second')]
  const folder = makeTemporaryDirectory()
  const pair = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  copyFileSync(expired.cert, pair.cert)
  copyFileSync(expired.key, pair.key)
  const url = `rediss://localhost:${await startSecureRedis()}`
  const gateway = await start(url, { ca: authorityFile, ...pair })
  const attempts = (): number => gateway.output().split('cannot connect to Redis').length
  expect(await ask(gateway, 1)).toEqual([503])
  const before = attempts()
  copyFileSync(renewed.cert, pair.cert)
  await eventually('a certificate without its key is a reason', () => attempts() > before)
  copyFileSync(renewed.key, pair.key)
  await eventually('Redis decides', async () => (await gateway.send('GET', '/connected')).status === 200)
})

describe.concurrent('is not asked, and the log says why,', () => {
  async function expectNoRedis(url: string, options: Options, reason: RegExp): Promise<void> {
    const gateway = await start(url, options)
    expect(await ask(gateway, 1)).toEqual([503])
    await untilReasonLogged(gateway, reason)
  }

  test('a server with a certificate of an unknown CA', async () => {
    const url = `rediss://localhost:${await startSecureRedis()}`
    const other = { ...withPair, ca: certificateFiles('named').cert }
    const reason = /self-signed certificate|unable to (get|verify)/
    await Promise.all([expectNoRedis(url, other, reason), expectNoRedis(url, withPair, reason)])
  })

  test('a server under another name', async () => {
    const url = `rediss://localhost:${await startSecureRedis('elsewhere')}`
    await expectNoRedis(url, trusting, /^Hostname\/IP does not match certificate's altnames: /)
  })

  test('a server that does not take us without a certificate', async () => {
    const url = `rediss://localhost:${await startSecureRedis()}`
    await expectNoRedis(url, { ca: authorityFile }, /certificate required/)
  })
})
