import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connectRedis } from '../../proxy/limits/store/redis/connecting/connection.ts'
import { parseRedisUrl } from '../../proxy/limits/store/redis/connecting/url.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce } from '../support/limiter/decisions.ts'
import { recordLog } from '../support/limiter/recordings.ts'
import { startRedisCluster, type RedisCluster } from '../support/redis/redis-cluster.ts'
import { openAnsweringLimiter, openRedis } from '../support/redis/redis-limiters.ts'
import { startRewriter } from '../support/redis/rewritten-replies.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import { freePort } from '../support/network/ports.ts'
import { isSince } from '../support/redis/redis-version.ts'
import { untilMatches } from '../support/wait/until-matches.ts'
import { eventually } from '../support/wait/eventually.ts'

const login = makePolicy('login', 5, 60_000, { countStatus: [{ first: 401, last: 401 }] })

test.for([
  ['INFO', 'is renamed away', ['--rename-command', 'INFO', '']],
  ['INFO', 'has another name', ['--rename-command', 'INFO', 'about']],
] as const)('the gateway counts in a Redis whose %s %s', async ([, , args]) => {
  const server = await startRedisServer({ args })
  const limiter = await openAnsweringLimiter(server.url)
  expect(countAllowed(await decideAtOnce([limiter], 9, chargeAll(newClient(), [login])))).toBe(5)
  expect(limiter.logLines.filter(({ level }) => level > 30)).toEqual([])
})

test.for([
  ['fixed', login],
  ['sliding', makePolicy('mail', 5, 60_000, { algorithm: 'sliding' })],
] as const)('the server has the script of %s decisions before the first of them', async ([, policy]) => {
  const server = await startRedisServer()
  const operator = openRedis(server.url)
  const monitor = await operator.monitor()
  const sent: string[][] = []
  monitor.on('monitor', (_time: string, args: string[]) => void sent.push(args))
  const limiter = await openAnsweringLimiter(server.url)
  expect(countAllowed(await decideAtOnce([limiter], 9, chargeAll(newClient(), [policy])))).toBe(5)
  await operator.echo('the end')
  await eventually('all commands are seen', () => sent.some(([, text]) => text === 'the end'))
  expect(sent.some(([name]) => name?.toLowerCase() === 'evalsha')).toBe(true)
  monitor.disconnect()
  // MONITOR escapes line ends, so the script is recognized by one of its lines.
  const texts = sent.filter(
    ([name, text]) => name?.toLowerCase() === 'eval' && text?.includes('local reply, tickets = {}, {}'),
  )
  // An EVAL without keys loads the script. With keys it would be a decision that took two round trips.
  expect(new Set(texts.map(([, , keys]) => keys))).toEqual(new Set(['0']))
})

test.for([
  ['no other node has met', [], 0],
  ['tells no address', ['--cluster-preferred-endpoint-type', 'unknown-endpoint'], 7.0],
] as const)('the gateway counts in a cluster of one node that %s', async ([, args, since], { skip }) => {
  if (!isSince(since)) skip('the option is of a later version')
  const bus = isSince(7.0) ? ['--cluster-port', String(await freePort())] : []
  const cluster = ['--cluster-enabled', 'yes', '--databases', '1', ...bus, ...args]
  const server = await startRedisServer({ args: cluster })
  const operator = openRedis(server.url)
  await operator.cluster('ADDSLOTS', ...Array.from({ length: 16_384 }, (_, slot) => slot))
  await untilMatches(() => operator.cluster('INFO'), /cluster_state:ok/)
  const limiter = await openAnsweringLimiter(`redis+cluster://127.0.0.1:${server.port}`)
  expect(countAllowed(await decideAtOnce([limiter], 9, chargeAll(newClient(), [login])))).toBe(5)
  expect(limiter.logLines.filter(({ level }) => level > 30)).toEqual([])
})

test('a Redis that takes no more clients is told from one that is away, until it takes some', async () => {
  const server = await startRedisServer()
  const operator = openRedis(server.url)
  await operator.config('SET', 'maxclients', '1')
  const { log, lines } = recordLog()
  const connection = connectRedis(parseRedisUrl(server.url), log)
  await eventually('the reason is logged', () =>
    lines.some(({ reason }) => /maxclients|max number of clients/.test(String(reason))),
  )
  await operator.config('SET', 'maxclients', '100')
  await eventually('it is connected', () => connection.client.status === 'ready')
  connection.close()
  for (const { reason } of lines) expect(String(reason)).not.toMatch(/EPIPE|ECONNRESET/)
})

describe('a cluster', () => {
  let cluster: RedisCluster

  beforeAll(async () => {
    cluster = await startRedisCluster(3, 1)
  })
  afterAll(() => cluster.close())

  test.for([
    ['by a name, while its nodes announce addresses', () => `localhost:${cluster.nodes[0]?.port}`],
    ['by one of its masters', () => `127.0.0.1:${cluster.nodes[1]?.port}`],
    ['by one of its replicas', () => `127.0.0.1:${cluster.nodes[5]?.port}`],
  ] as const)('is connected at the first attempt if it is given %s', async ([, host]) => {
    const { log, lines } = recordLog()
    const connection = connectRedis(parseRedisUrl(`redis+cluster://${host()}`), log)
    let attempts = 0
    connection.client.on('connecting', () => attempts++)
    await connection.connected(20_000)
    const { client } = connection
    const masters = 'nodes' in client ? client.nodes('master').map(({ status }) => status) : []
    connection.close()
    expect(attempts).toBe(1)
    expect(masters).toEqual(['ready', 'ready', 'ready'])
    expect(lines.map(({ msg }) => msg)).toEqual(['connected to Redis'])
  })

  test('whose announced addresses cannot be reached is not said to be connected, and the log says why', async () => {
    const [node] = cluster.nodes
    if (!node) throw new RangeError('six nodes')
    // Of the reply to CLUSTER SLOTS.
    const port = await startRewriter(node.port, (text) => (text === '127.0.0.1' ? '127.0.0.2' : text))
    const { log, lines } = recordLog()
    const connection = connectRedis(parseRedisUrl(`redis+cluster://localhost:${port}`), log)
    let attempts = 0
    connection.client.on('connecting', () => attempts++)
    await eventually('it has tried several times', () => attempts > 4)
    connection.close()
    expect(lines.map(({ msg }) => msg)).not.toContain('connected to Redis')
    expect(lines.map(({ reason }) => String(reason))).toContainEqual(
      expect.stringMatching(/ECONNREFUSED 127\.0\.0\.2/),
    )
    expect(lines.length).toBeLessThan(4)
  })
})
