import { createServer, type Socket } from 'node:net'
import { Redis } from 'ioredis'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { RunningLimiter } from '../support/limiter/limiters.ts'
import { CLOSED_PORT } from '../support/network/ports.ts'
import { openAnsweringLimiter, openLimiter, openRedis } from '../support/redis/redis-limiters.ts'
import { startSentinel, type Sentinel } from '../support/redis/redis-sentinel.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import { eventually } from '../support/wait/eventually.ts'

/* The logged reasons for having no connection to Redis: facts about the named server, without a library's jargon. */

function reasons({ logLines }: RunningLimiter): (string | undefined)[] {
  return logLines.filter(({ msg }) => msg.startsWith('cannot connect to Redis')).map(({ reason }) => reason)
}

async function startSentinels(count: number, masterPort: number): Promise<number[]> {
  const sentinels = Array.from({ length: count }, () => startSentinel({ masterPort }))
  return (await Promise.all(sentinels)).map(({ port }) => port)
}

const urlOf = (ports: readonly number[], master = 'main'): string =>
  `redis+sentinel://${ports.map((port) => `127.0.0.1:${port}`).join()}/${master}`

describe.each([1, 2, 3])('with %i sentinels that all answer', (count) => {
  test('the log names the stopped master as the reason, not the sentinels', async () => {
    const master = await startRedisServer()
    const ports = await startSentinels(count, master.port)
    const limiter = await openAnsweringLimiter(urlOf(ports))
    const connections: number[] = []
    limiter.connection.client.on('connecting', () => connections.push(performance.now()))
    await master.stop()
    await eventually('it has tried several times', () => connections.length > 2 * count + 2)
    const told = reasons(limiter)
    expect(told).toContain(`connect ECONNREFUSED 127.0.0.1:${master.port}`)
    // On a busy machine a sentinel may not answer within its timeout.
    const others = told.filter((reason) => !/^sentinel \S+: no answer in time$/.test(reason ?? ''))
    expect(others.join('\n')).not.toMatch(/sentinel/i)
  })

  test('a name that they do not know is the reason', async () => {
    const master = await startRedisServer()
    const ports = await startSentinels(count, master.port)
    const limiter = openLimiter(urlOf(ports, 'other'))
    const each = ports
      .toSorted()
      .map((port) => `sentinel 127.0.0.1:${port}: ERR No such master with that name`)
    await eventually('the log says so', () => expect(reasons(limiter)).toContain(each.join('; ')))
  })
})

test('sentinels that cannot be asked are each named, with their error', async () => {
  const sockets: Socket[] = []
  const silent = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1')
  onTestFinished(() => {
    silent.close()
    for (const socket of sockets) socket.destroy()
  })
  const master = await startRedisServer()
  const [guarded] = await Promise.all([
    startSentinel({ masterPort: master.port, lines: ['requirepass secret'] }),
    eventually('it listens', () => silent.listening),
  ])
  const port = (silent.address() as { port: number }).port
  const limiter = openLimiter(
    `redis+sentinel://127.0.0.1:${CLOSED_PORT},127.0.0.1:${port},127.0.0.1:${guarded.port}/main`,
  )
  await eventually('the log says why', () => expect(reasons(limiter)).toHaveLength(1))
  const parts = reasons(limiter)[0]?.split('; ').toSorted()
  expect(parts).toEqual(
    [
      `sentinel 127.0.0.1:${CLOSED_PORT}: connect ECONNREFUSED 127.0.0.1:${CLOSED_PORT}`,
      `sentinel 127.0.0.1:${port}: no answer in time`,
      `sentinel 127.0.0.1:${guarded.port}: NOAUTH Authentication required.`,
    ].toSorted(),
  )
})

test('an unreachable sentinel is not reported while another names the master', async () => {
  const master = await startRedisServer()
  const limiter = await openAnsweringLimiter(urlOf([CLOSED_PORT, ...(await startSentinels(1, master.port))]))
  const operator = openRedis(master.url)
  for (let i = 0; i < 3; i++) {
    const before = await limiter.connection.client.client('ID')
    await operator.call('CLIENT', 'KILL', 'ID', before)
    await eventually('it is connected again', async () =>
      expect(await limiter.connection.client.client('ID')).not.toBe(before),
    )
  }
  const others = reasons(limiter).filter((reason) => !reason?.includes('no answer in time'))
  expect(others.join('\n')).not.toMatch(/sentinel/i)
})

test('another sentinel is listened to when the one that named the master goes away', async () => {
  const printed: string[] = []
  const print = vi
    .spyOn(console, 'error')
    .mockImplementation((...words) => void printed.push(words.join(' ')))
  onTestFinished(() => print.mockRestore())
  const master = await startRedisServer()
  const [first, second] = await Promise.all([1, 2].map(() => startSentinel({ masterPort: master.port })))
  if (!first || !second) throw new RangeError('two sentinels')
  await openAnsweringLimiter(urlOf([first.port, second.port]))
  const isHeardAt = async ({ port }: Sentinel): Promise<boolean> => {
    const client = new Redis(port, { enableReadyCheck: false })
    try {
      return / sub=1 /.test(String(await client.client('LIST')))
    } finally {
      client.disconnect()
    }
  }
  await eventually('the first is listened to', () => isHeardAt(first))
  await first.stop()
  await eventually('the second is listened to', () => isHeardAt(second))
  expect(printed).toEqual([])
})

test('a master that reports to be a replica is the reason, until it has become the master', async () => {
  const master = await startRedisServer()
  const replica = await startRedisServer({ args: ['--replicaof', '127.0.0.1', String(master.port)] })
  const limiter = openLimiter(urlOf(await startSentinels(1, replica.port)))
  const logged = (): string[] => limiter.logLines.map(({ msg }) => msg)
  await eventually('the log says so', () =>
    expect(logged()).toContain('connected to a replica of Redis; looking for the master'),
  )
  let attempts = 0
  limiter.connection.client.on('connect', () => attempts++)
  await eventually('it has tried several times', () => attempts > 3)
  expect(limiter.logLines.map(({ reason }) => reason)).toEqual([
    'the server that Sentinel names as the master is a replica',
  ])
  await openRedis(replica.url).replicaof('NO', 'ONE')
  await eventually('it is connected', () => expect(logged()).toContain('connected to Redis'))
})
