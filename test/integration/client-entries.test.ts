import { setImmediate } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { Banning } from '../../proxy/limits/clients/banning.ts'
import { BanCounts } from '../../proxy/limits/clients/ban-counts.ts'
import { ClientEntries } from '../../proxy/limits/clients/client-entries.ts'
import { idOf, partsOf, type Ban, type ClientEntry } from '../../proxy/limits/clients/client-entry.ts'
import { createMemoryEntryStore, type EntryStore } from '../../proxy/limits/clients/entry-store.ts'
import { RedisEntryStore } from '../../proxy/limits/clients/redis/redis-entry-store.ts'
import { connectRedis } from '../../proxy/limits/store/redis/connecting/connection.ts'
import type { RedisClient } from '../../proxy/limits/store/redis/run-script.ts'
import { parseRedisUrl } from '../../proxy/limits/store/redis/connecting/url.ts'
import type { Policy } from '../../proxy/policy.ts'
import { startRedisCluster } from '../support/redis/redis-cluster.ts'
import { openRedis, readDocumentedRights } from '../support/redis/redis-limiters.ts'
import { freshRedis, startRedisServer } from '../support/redis/redis.ts'
import { loadWithFile } from '../support/gateway/settings.ts'
import { eventually } from '../support/wait/eventually.ts'
import { passes } from '../support/wait/passes.ts'
import { wallClockMs } from '../support/calendar/wall-clock.ts'

const now = (): number => performance.now()
const log = pino({ level: 'silent' })

function ban(partitionKey: string, policy?: string): Ban {
  return { kind: 'ban', ...(policy !== undefined && { policy }), partitionKey, by: 'operator' }
}

function addressOf(index: number): string {
  return `10.0.${Math.trunc(index / 250)}.${index % 250}`
}

type Replica = {
  readonly entries: ClientEntries
  readonly store: EntryStore
  readonly state: { isAnswering: boolean }
}

async function openReplica(redis: RedisClient): Promise<Replica> {
  const entries = new ClientEntries(now)
  const state = { isAnswering: true }
  const isAnswering = (): boolean => state.isAnswering
  const store = new RedisEntryStore({
    entries,
    redis,
    keyPrefix: 'sluice:1',
    isAnswering,
    timeoutMs: 5_000,
    now,
    log,
  })
  const replica = { entries, store, state }
  onTestFinished(() => replica.store.close())
  await replica.store.ready()
  return replica
}

async function openReplicas(): Promise<{ first: Replica; second: Replica; redis: RedisClient }> {
  const redis = openRedis(await freshRedis())
  return { first: await openReplica(redis), second: await openReplica(redis), redis }
}

const ids = ({ entries }: Pick<Replica, 'entries'>): string[] =>
  entries
    .all()
    .map(({ id }) => id)
    .toSorted()

test('a change by one replica reaches another, which reads earlier entries when it starts', async () => {
  const { first, second, redis } = await openReplicas()
  const entry: ClientEntry = { kind: 'override', policy: 'api', partitionKey: 'h:x', requests: 7, label: 'A' }
  expect(await first.store.put(ban('192.0.2.1'), 60_000)).toBe('done')
  expect(await first.store.put(entry, 60_000)).toBe('done')
  await eventually('the other replica has heard of both', () =>
    expect(ids(second)).toEqual(['ban * 192.0.2.1', 'override api h:x']),
  )
  expect(second.entries.list('override')[0]?.entry).toEqual(entry)
  expect(second.entries.list('override')[0]?.leftMs).toBeGreaterThan(55_000)
  expect(ids(await openReplica(redis))).toEqual(['ban * 192.0.2.1', 'override api h:x'])

  expect(await second.store.remove('ban * 192.0.2.1')).toBe('done')
  expect(await second.store.remove('ban * 192.0.2.1')).toBe('absent')
  await eventually('the first replica has heard of the removal', () =>
    expect(ids(first)).toEqual(['override api h:x']),
  )
  expect(ids(await openReplica(redis))).toEqual(['override api h:x'])
})

test('a replica learns of a thousand changes made at once', async () => {
  const { first, second } = await openReplicas()
  await Promise.all(Array.from({ length: 1000 }, (_, i) => first.store.put(ban(addressOf(i)), 60_000)))
  await eventually('a thousand bans are heard of', () =>
    expect(second.entries.list('ban')).toHaveLength(1000),
  )
  await Promise.all(Array.from({ length: 999 }, (_, i) => second.store.remove(`ban * ${addressOf(i)}`)))
  await eventually('their removals are heard of', () =>
    expect(ids(first)).toEqual([`ban * ${addressOf(999)}`]),
  )
})

test('an expired ban is gone from every replica and from Redis', async () => {
  const { first, second, redis } = await openReplicas()
  await first.store.put(ban('192.0.2.1'), 60_000)
  await eventually('the other replica has heard of the ban', () => expect(ids(second)).toHaveLength(1))
  // If the ban had been this short from the beginning, it could have ended before the other replica is asked.
  await first.store.put(ban('192.0.2.1'), 300)
  await eventually('the ban has ended everywhere', () => expect([...ids(first), ...ids(second)]).toEqual([]))
  // The next change removes expired entries.
  await first.store.put(ban('192.0.2.2'), 60_000)
  expect(await redis.hkeys('sluice:1:{clients}')).toEqual(['ban * 192.0.2.2'])
  const keys = await redis.keys('*')
  expect(keys.toSorted()).toEqual([
    'sluice:1:{clients}',
    'sluice:1:{clients}:ban',
    'sluice:1:{clients}:changes',
  ])
  for (const key of keys) {
    expect(await redis.pttl(key)).toBeGreaterThan(60_000)
    expect(await redis.pttl(key)).toBeLessThan(2 * 3_600_000)
  }
})

test('a rule makes a ban longer, never shorter', async () => {
  const { first, second } = await openReplicas()
  await first.store.put(ban('192.0.2.1', 'login'), 60_000)
  // The longer ban stays, whether or not the replica has learned of it.
  await second.store.extend({ ...ban('192.0.2.1', 'login'), by: 'rule' }, 1000)
  await eventually('the longer ban is kept', () =>
    expect(second.entries.leftMs('ban login 192.0.2.1')).toBeGreaterThan(50_000),
  )
  await second.store.extend({ ...ban('192.0.2.1', 'login'), by: 'rule' }, 120_000)
  await eventually('the ban is longer everywhere', () =>
    expect(first.entries.leftMs('ban login 192.0.2.1')).toBeGreaterThan(110_000),
  )
})

test('a ban that is made while Redis is away holds here, and everywhere once it is back', async () => {
  const { first, second } = await openReplicas()
  first.state.isAnswering = false
  expect(await first.store.put(ban('192.0.2.1'), 60_000)).toBe('unavailable')
  expect(await first.store.extend(ban('192.0.2.2'), 60_000)).toBe('unavailable')
  expect(ids(first)).toEqual(['ban * 192.0.2.2'])
  first.state.isAnswering = true
  await eventually('the ban is everywhere', () => expect(ids(second)).toEqual(['ban * 192.0.2.2']))
  expect(ids(first)).toEqual(['ban * 192.0.2.2'])
})

test('a ban that was lifted meanwhile does not come back from a replica that was cut off', async () => {
  const { first, second } = await openReplicas()
  second.state.isAnswering = false
  for (const replica of [first, second])
    for (const key of ['192.0.2.1', '192.0.2.2']) await replica.store.extend(ban(key), 60_000)
  expect(ids(second)).toEqual(['ban * 192.0.2.1', 'ban * 192.0.2.2'])
  // One ban that all replicas know, and one that only this replica knows.
  expect(await first.store.remove('ban * 192.0.2.1')).toBe('done')
  expect(await first.store.remove('ban * 192.0.2.2')).toBe('done')
  expect(await first.store.remove('ban * 192.0.2.2')).toBe('absent')
  second.state.isAnswering = true
  await eventually('the bans are lifted here too', () => expect(ids(second)).toEqual([]))
  await passes(600)
  expect([...ids(first), ...ids(second)]).toEqual([])
})

test('an operator’s entry replaces the pending write of a rule', async () => {
  const { first, second } = await openReplicas()
  first.state.isAnswering = false
  await first.store.extend(ban('192.0.2.1'), 3_600_000)
  first.state.isAnswering = true
  await first.store.put(ban('192.0.2.1'), 60_000)
  // This must not be the rule's ban, which the replica may have learned of earlier.
  await eventually('the other replica has heard of it', () => {
    expect(second.entries.leftMs('ban * 192.0.2.1')).toBeGreaterThan(0)
    expect(second.entries.leftMs('ban * 192.0.2.1')).toBeLessThanOrEqual(60_000)
  })
  await passes(600)
  for (const { entries } of [first, second])
    expect(entries.leftMs('ban * 192.0.2.1')).toBeLessThanOrEqual(60_000)
})

test('a replica that has heard nothing for more than an hour reads all', async () => {
  const { first, redis } = await openReplicas()
  await first.store.put(ban('192.0.2.1'), 60_000)
  // The change was two hours ago, with none since.
  const changes = 'sluice:1:{clients}:changes'
  // Matches the clock of Redis, which is this machine's or its container's.
  await redis.zadd(changes, (wallClockMs() - 7_200_000) * 1000, 'ban * 192.0.2.1')
  const late = await openReplica(redis)
  expect(ids(late)).toEqual(['ban * 192.0.2.1'])
  // Since then one ban was lifted, which is no longer reported, and another was added.
  await redis.hdel('sluice:1:{clients}', 'ban * 192.0.2.1')
  await first.store.put(ban('192.0.2.2'), 60_000)
  await eventually('all is read again', () => expect(ids(late)).toEqual(['ban * 192.0.2.2']))
})

test('rules leave operators room for their bans', async () => {
  const redis = openRedis(await freshRedis())
  await fillRedis(
    redis,
    Array.from({ length: 9000 }, (_, i) => ban(addressOf(i))),
  )
  const memory = new ClientEntries(now)
  for (let i = 0; i < 9000; i++) memory.set(ban(addressOf(i)), 60_000)
  for (const store of [(await openReplica(redis)).store, createMemoryEntryStore(memory)]) {
    expect(await store.extend(ban('192.0.2.1'), 60_000)).toBe('full')
    expect(await store.put(ban('192.0.2.1'), 60_000)).toBe('done')
  }
})

test('a table of bans by rules that is full in Redis makes room for another, in all replicas', async () => {
  const redis = openRedis(await freshRedis())
  const byRule = (index: number): Ban => ({ ...ban(addressOf(index)), by: 'rule' })
  await fillRedis(
    redis,
    Array.from({ length: 9000 }, (_, i) => byRule(i)),
  )
  const [first, second] = [await openReplica(redis), await openReplica(redis)]
  expect(await first.store.extend({ ...ban('192.0.2.1'), by: 'rule' }, 90_000)).toBe('done')
  await eventually('both have room, and the new one', () => {
    for (const { entries } of [first, second]) {
      expect(entries.findAddressBan('192.0.2.1')).toBeDefined()
      expect(entries.list('ban').length).toBeLessThan(9000)
    }
  })
  expect(ids(second).sort()).toEqual(ids(first).sort())
  expect(await redis.zcard('sluice:1:{clients}:ban')).toBe(first.entries.list('ban').length)
})

test('a ban is stored even if other replicas have just filled the table in Redis', async () => {
  const redis = openRedis(await freshRedis())
  const replica = await openReplica(redis)
  const byRule = (index: number): Ban => ({ ...ban(addressOf(index)), by: 'rule' })
  for (let i = 0; i < 100; i++) expect(await replica.store.extend(byRule(i), 60_000)).toBe('done')
  // The replica has not learned of these.
  await fillRedis(
    redis,
    Array.from({ length: 8950 }, (_, i) => byRule(1000 + i)),
  )
  expect(await replica.store.extend({ ...ban('192.0.2.1'), by: 'rule' }, 90_000)).toBe('done')
  expect(replica.entries.findAddressBan('192.0.2.1')).toBeDefined()
  expect(await redis.zscore('sluice:1:{clients}:ban', 'ban * 192.0.2.1')).not.toBeNull()
})

test('a refusal that was counted and not heard of is not the last that could ban', async () => {
  const redis = openRedis(await freshRedis())
  const counts = new BanCounts({
    ban: { after: 3, forMs: 1000, maxMs: 2000, scope: 'rule' },
    windowMs: 60_000,
    redis,
    keyStart: 'sluice:1:ban:login',
    isAnswering: () => true,
    now,
  })
  expect(await counts.countRefusal('a')).toBe(0)
  await redis.incrby('sluice:1:ban:login:refusals:a', 4)
  expect(await counts.countRefusal('a')).toBe(1)
  // Concurrent callers do not count a refusal twice.
  expect(await Promise.all([counts.countRefusal('a'), counts.countRefusal('a')])).toEqual([0, 0])
})

test("refusals count for the rule's window, even where a burst makes that of the bucket shorter", async () => {
  const redis = openRedis(await freshRedis())
  await redis.ping()
  const rule =
    '{ name: a, match: GET /, algorithm: token-bucket, requests: 60, window: 1m, burst: 1, ban: { after: 3, for: 1h } }'
  const policies = loadWithFile(`limits: [${rule}]`).settings.rules.map(({ policy }) => policy)
  const banning = new Banning({
    store: createMemoryEntryStore(new ClientEntries(now)),
    policies,
    redis,
    keyPrefix: 'sluice:1',
    isAnswering: () => true,
    telemetry: { clientBanned: () => undefined },
    logAddresses: true,
    now,
    log,
  })
  for (const policy of policies) banning.refused(policy, 'x')
  await eventually('the refusal is counted for the window', async () =>
    expect(await redis.pttl('sluice:1:ban:a:refusals:x')).toBeGreaterThan(50_000),
  )
})

test.each([
  ['in Redis', true],
  ['in this process', false],
])('refusals under a window of the calendar count until its border, %s', async (_, isShared) => {
  const redis = openRedis(await freshRedis())
  await redis.ping()
  const rule = '{ name: a, match: GET /, requests: 60, window: month, ban: { after: 2, for: 1h } }'
  const policies = loadWithFile(`limits: [${rule}]`).settings.rules.map(({ policy }) => policy)
  const bans: string[] = []
  let nowMs = 1_000
  const banning = new Banning({
    store: createMemoryEntryStore(new ClientEntries(now)),
    policies,
    redis: isShared ? redis : undefined,
    keyPrefix: 'sluice:1',
    isAnswering: () => true,
    telemetry: { clientBanned: ({ name }) => void bans.push(name) },
    logAddresses: true,
    now: () => nowMs,
    wallNow: () => Date.parse('2027-01-31T23:58:20Z'),
    log,
  })
  for (const policy of policies) banning.refused(policy, 'x')
  if (isShared)
    await eventually('the refusal counts for the 100 seconds that are left', async () => {
      const leftMs = await redis.pttl('sluice:1:ban:a:refusals:x')
      expect(leftMs > 50_000 && leftMs <= 100_000).toBe(true)
    })
  else {
    await setImmediate()
    nowMs += 100_001
    for (const policy of policies) banning.refused(policy, 'x')
    await setImmediate()
    expect(bans).toEqual([])
    for (const policy of policies) banning.refused(policy, 'x')
    await eventually('the second refusal of a window bans', () => expect(bans).toEqual(['a']))
  }
})

test('a ban under all rules is for a value of one part of the request, not for the same value elsewhere', () => {
  const policy = (name: string, key: string): Policy => {
    const [rule] = loadWithFile(
      `limits: [{ name: ${name}, match: '* /:tenant/*', key: '${key}', requests: 1, window: 1m }]`,
    ).settings.rules
    if (!rule) throw new RangeError('no rule')
    return rule.policy
  }
  const [header, path, again] = [
    policy('a', 'header:x-device'),
    policy('b', 'path:tenant'),
    policy('c', 'header:x-device'),
  ]
  const partitionKey = 'h:0123456789012345678901'
  const entries = new ClientEntries(now)
  const parts = partsOf(header, partitionKey)
  entries.set({ kind: 'ban', parts, partitionKey, by: 'rule' }, 60_000)
  const isBanned = (by: Policy): boolean => entries.findKeyBan([{ policy: by, partitionKey }]) !== undefined
  expect([isBanned(header), isBanned(path), isBanned(again)]).toEqual([true, false, true])
})

test('a Redis that has lost everything empties the entries of a replica', async () => {
  const { first, second, redis } = await openReplicas()
  await first.store.put(ban('192.0.2.1'), 60_000)
  await eventually('the other replica has heard of the ban', () => expect(ids(second)).toHaveLength(1))
  await redis.flushdb()
  await eventually('the ban is forgotten everywhere', () =>
    expect([...ids(first), ...ids(second)]).toEqual([]),
  )
  await first.store.put(ban('192.0.2.3'), 60_000)
  await eventually('the next ban is heard of', () => expect(ids(second)).toEqual(['ban * 192.0.2.3']))
})

test('entries that another version has written are ignored', async () => {
  const { first, redis } = await openReplicas()
  // Matches the clock of Redis, which is this machine's or its container's.
  const later = wallClockMs() + 60_000
  await redis.hset('sluice:1:{clients}', {
    'ban * 192.0.2.1': `${later} {"kind":"ban","partitionKey":"192.0.2.9","by":"operator"}`,
    'ban * 192.0.2.2': 'nonsense',
    'other x y': `${later} {"kind":"other"}`,
    'ban * 192.0.2.3': `${later} ${JSON.stringify(ban('192.0.2.3'))}`,
  })
  await first.store.put(ban('192.0.2.4'), 60_000)
  expect(ids(await openReplica(redis))).toEqual(['ban * 192.0.2.3', 'ban * 192.0.2.4'])
})

/** Puts entries into Redis in two commands, as if other programs had added that many. */
async function fillRedis(redis: Redis, entries: readonly ClientEntry[]): Promise<void> {
  // Matches the clock of Redis, which is this machine's or its container's.
  const endsAt = wallClockMs() + 60_000
  const key = 'sluice:1:{clients}'
  await redis.hset(key, ...entries.flatMap((entry) => [idOf(entry), `${endsAt} ${JSON.stringify(entry)}`]))
  await redis.zadd(`${key}:ban`, ...entries.flatMap((entry) => [endsAt, idOf(entry)]))
}

test.each(['memory', 'Redis'])('there are at most 10,000 of each kind: %s', async (place) => {
  const all = Array.from({ length: 10_000 }, (_, i) => ban(addressOf(i)))
  let store: EntryStore
  if (place === 'Redis') {
    const redis = openRedis(await freshRedis())
    await fillRedis(redis, all)
    const replica = await openReplica(redis)
    store = replica.store
    expect(replica.entries.list('ban')).toHaveLength(10_000)
  } else {
    store = createMemoryEntryStore(new ClientEntries(now))
    for (const entry of all) expect(await store.put(entry, 60_000)).toBe('done')
  }
  expect(await store.put(ban('192.0.2.1'), 60_000)).toBe('full')
  expect(await store.extend(ban('192.0.2.2'), 60_000)).toBe('full')
  // Existing entries can still be changed, and removing one makes room.
  expect(await store.put(ban(addressOf(0)), 90_000)).toBe('done')
  expect(await store.remove(idOf(ban(addressOf(1))))).toBe('done')
  expect(await store.put(ban('192.0.2.1'), 60_000)).toBe('done')
  const override: ClientEntry = { kind: 'override', policy: 'api', partitionKey: 'x', requests: 1 }
  expect(await store.put(override, 60_000)).toBe('done')
})

test('bans and overrides work on a Redis cluster', async () => {
  const cluster = await startRedisCluster(3, 0)
  onTestFinished(() => cluster.close())
  const connection = connectRedis(parseRedisUrl(cluster.url), log)
  onTestFinished(() => connection.close())
  await connection.connected(20_000)
  const redis = connection.client
  const [first, second] = [await openReplica(redis), await openReplica(redis)]
  expect(await first.store.put(ban('192.0.2.1'), 60_000)).toBe('done')
  await eventually('the other replica has heard of the ban', () =>
    expect(ids(second)).toEqual(['ban * 192.0.2.1']),
  )
})

test('the rights in the docs are enough for bans and limits at run time, and needed', async () => {
  const server = await startRedisServer()
  const operator = openRedis(server.url)
  const { counting, runTime, bans } = readDocumentedRights()
  const userUrl = server.url.replace('//', '//sluice:password@')
  await operator.call('ACL', 'SETUSER', 'sluice', 'on', '>password', ...counting, ...runTime, ...bans)
  const redis = openRedis(userUrl)
  const { store, entries } = await openReplica(redis)
  for (const when of ['first', 'replaced'])
    expect(await store.put(ban('192.0.2.1'), 60_000), when).toBe('done')
  expect(await store.put(ban('192.0.2.3'), 50)).toBe('done')
  await passes(100)
  expect(await store.remove('ban * 192.0.2.1')).toBe('done')
  expect(await store.put(ban('192.0.2.2'), 60_000)).toBe('done')
  expect(ids(await openReplica(redis))).toEqual(['ban * 192.0.2.2'])
  const counts = new BanCounts({
    ban: { after: 2, forMs: 1000, maxMs: 2000, scope: 'rule' },
    windowMs: 60_000,
    redis,
    keyStart: 'sluice:1:ban:login',
    isAnswering: () => true,
    now,
  })
  expect([await counts.countRefusal('a'), await counts.countRefusal('a')]).toEqual([0, 1])
  expect(await operator.keys('sluice:1:ban:*')).toHaveLength(3)
  await counts.forgive('a')
  expect(await operator.keys('sluice:1:ban:*')).toEqual([])

  for (const right of ['time', 'hset', 'zadd', 'zscore', 'zcard', 'zrevrange', 'zrangebyscore']) {
    await operator.call('ACL', 'SETUSER', 'sluice', `-${right}`)
    expect(await store.put(ban('192.0.2.5'), 60_000), right).toBe('uncertain')
    await operator.call('ACL', 'SETUSER', 'sluice', `+${right}`)
  }
  expect(ids({ entries })).toEqual(['ban * 192.0.2.2'])
})
