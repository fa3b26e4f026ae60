import type { Redis } from 'ioredis'
import { beforeEach, describe, expect, test } from 'vitest'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce } from '../support/limiter/decisions.ts'
import { waitUntilAnswering, type RunningLimiter } from '../support/limiter/limiters.ts'
import { openLimiter, openRedis } from '../support/redis/redis-limiters.ts'
import { startRewriter } from '../support/redis/rewritten-replies.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import type { RedisServer } from '../support/redis/redis-server.ts'
import { eventually } from '../support/wait/eventually.ts'

/*
 * Redis is reachable and answers, but not with a decision. Each kind of error has one clear log line, the rules follow their
 * `onStoreError`, and once the operator has fixed the cause, Redis decides again without a restart.
 */

const login = makePolicy('login', 5, 60_000)

let server: RedisServer
let operator: Redis

beforeEach(async () => {
  server = await startRedisServer()
  operator = openRedis(server.url)
})

function start(login = '', path = ''): RunningLimiter {
  return openLimiter(server.url.replace('redis://', `redis://${login}`) + path)
}

/** Resolves with the logged reasons for having no connection, once there is one. */
async function connectionProblems(limiter: RunningLimiter): Promise<(string | undefined)[]> {
  const reasons = (): (string | undefined)[] =>
    limiter.logLines
      .filter(({ msg }) => msg === 'cannot connect to Redis; retrying')
      .map(({ reason }) => reason)
  await eventually('the log says why there is no connection', () => reasons().length > 0)
  return reasons()
}

/** Expects local counters to allow what Redis would have allowed. Returns the logged reasons for giving Redis up. */
async function expectLocalDecisions(limiter: RunningLimiter): Promise<(string | undefined)[]> {
  const client = newClient()
  const decisions = []
  for (let i = 0; i < 8; i++) decisions.push(await limiter.decide(chargeAll(client, [login])))
  expect(countAllowed(decisions)).toBe(5)
  await eventually('Redis is given up', () => limiter.storeState() === 'unavailable')
  expect(limiter.decide(chargeAll(newClient(), [login]))).not.toBeInstanceOf(Promise)
  return limiter.logLines.filter(({ msg }) => msg.startsWith('Redis unavailable')).map(({ reason }) => reason)
}

async function expectSharedDecisions(limiter: RunningLimiter): Promise<void> {
  await waitUntilAnswering(limiter)
  const client = newClient()
  await decideAtOnce([limiter], 3, chargeAll(client, [login]))
  expect(await operator.get(`sluice:1:{${client}}:login:60000`)).toBe('3')
}

describe('Redis that answers with an error', () => {
  test('a full Redis applies onStoreError', async () => {
    const limiter = start()
    await waitUntilAnswering(limiter)
    await operator.config('SET', 'maxmemory', '1')
    const reasons = await expectLocalDecisions(limiter)
    expect(reasons).toEqual([expect.stringMatching(/^OOM command not allowed/)])
    await operator.config('SET', 'maxmemory', '0')
    await expectSharedDecisions(limiter)
  })

  test.for([
    ['of Redis 7 and 8, and Valkey', (text: string) => text],
    [
      'of Redis 6.2 and KeyDB',
      (text: string) => text.replace(/^(READONLY [^(]*?) ?(?=\(|$)/, '@user_script: 106: -$1\r\n '),
    ],
    [
      'of a script that fails, in Redis 6.2 and KeyDB',
      (text: string) =>
        text.replace(
          /^READONLY .*/,
          'ERR Error running script (call to f_0a1b): @user_script:1: @user_script: 1: -$&',
        ),
    ],
  ] as const)(
    'a Redis that has become a replica makes the limiter look for the master, in the words %s',
    async ([, words]) => {
      // The operator's connection reads the server's own words.
      const port = await startRewriter(server.port, words)
      const limiter = openLimiter(`redis://127.0.0.1:${port}`)
      await waitUntilAnswering(limiter)
      await decideAtOnce([limiter], 1, chargeAll(newClient(), [login]))
      const idBefore = await limiter.connection.client.client('ID')
      await operator.replicaof('127.0.0.1', '1')
      const reasons = await expectLocalDecisions(limiter)
      expect(reasons).toEqual([expect.stringMatching(/^(READONLY|not connected)/)])
      await operator.replicaof('NO', 'ONE')
      await expectSharedDecisions(limiter)
      expect(await limiter.connection.client.client('ID')).not.toBe(idBefore)
    },
  )

  test('a permanent replica is reported once, without endless reconnects', async () => {
    await operator.replicaof('127.0.0.1', '1')
    const limiter = start()
    const connections = async (): Promise<number> =>
      Number(/total_connections_received:(\d+)/.exec(await operator.info('stats'))?.[1])
    const before = await connections()
    const startedMs = performance.now()
    await eventually('it has left six replicas', async () => (await connections()) >= before + 6)
    // Each wait is longer than the one before: 50, 100, 200, 400 and 800 ms. A busy machine can only lengthen them.
    expect(performance.now() - startedMs).toBeGreaterThan(700)
    const lines = limiter.logLines.map(({ msg, reason = '' }) => [msg, reason.split(' ')[0]])
    expect(lines).toHaveLength(new Set(lines.map(String)).size)
    expect(lines).toContainEqual(['connected to a replica of Redis; looking for the master', 'READONLY'])
    expect(lines.length).toBeLessThanOrEqual(4)
  })

  test('a user without the right to run scripts is reported', async () => {
    await operator.acl('SETUSER', 'sluice', 'on', '>pw', '~sluice:*', '+@all', '-eval', '-evalsha')
    const limiter = start('sluice:pw@')
    const reasons = await expectLocalDecisions(limiter)
    expect(reasons).toEqual([expect.stringMatching(/^(NOPERM|not connected)/)])
    await operator.acl('SETUSER', 'sluice', '+eval', '+evalsha')
    await expectSharedDecisions(limiter)
  })

  test('a wrong password is reported, and shown nowhere', async () => {
    await operator.acl('SETUSER', 'sluice', 'on', '>right', '~sluice:*', '+@all')
    const limiter = start('sluice:wr0ng-secret@')
    const reasons = await expectLocalDecisions(limiter)
    expect(reasons).toEqual(['not connected'])
    expect(await connectionProblems(limiter)).toEqual([expect.stringMatching(/^WRONGPASS/)])
    expect(JSON.stringify(limiter.logLines)).not.toContain('wr0ng-secret')
    await operator.acl('SETUSER', 'sluice', '>wr0ng-secret')
    await expectSharedDecisions(limiter)
  })

  test('a missing database is reported', async () => {
    const limiter = start('', '/100000')
    await expectLocalDecisions(limiter)
    expect(await connectionProblems(limiter)).toEqual([expect.stringMatching(/DB index is out of range/)])
    // Not even for a moment, after which requests would be counted in database 0.
    const attempts: string[] = []
    limiter.connection.client.on('ready', () => attempts.push('ready'))
    limiter.connection.client.on('connect', () => attempts.push('connect'))
    await eventually('it has tried several times', () => attempts.length > 3 || attempts.includes('ready'))
    expect(attempts).not.toContain('ready')
    expect(await operator.dbsize()).toBe(0)
    expect(limiter.logLines.map(({ msg }) => msg)).not.toContain('connected to Redis')
  })
})
