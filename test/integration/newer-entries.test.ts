import { expect, onTestFinished, test } from 'vitest'
import { ClientEntries } from '../../proxy/limits/clients/client-entries.ts'
import { RedisEntryStore } from '../../proxy/limits/clients/redis/redis-entry-store.ts'
import { recordLog } from '../support/limiter/recordings.ts'
import { openRedis } from '../support/redis/redis-limiters.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { wallClockMs } from '../support/calendar/wall-clock.ts'

/* During an upgrade two versions of the gateway share one Redis. The older version ignores entries that it does not understand. */

const known = JSON.stringify({ kind: 'ban', partitionKey: '192.0.2.1', by: 'operator' })

test.for([
  ['a kind of its own', 'quarantine * 192.0.2.2', '{"kind":"quarantine","partitionKey":"192.0.2.2"}'],
  ['a ban by something else', 'ban * 192.0.2.2', '{"kind":"ban","networks":["192.0.2.0/24"]}'],
  [
    'an override without a number',
    'override login 192.0.2.2',
    '{"kind":"override","policy":"login","share":0.5}',
  ],
  ['an id of another form', 'ban:2 192.0.2.2', known.replace('.1"', '.2"')],
  ['another encoding', 'ban * 192.0.2.2', 'cbor:a163'],
] as const)('the log says once that a newer version has written %s', async ([, id, json]) => {
  const redis = openRedis(await freshRedis())
  const endsAt = wallClockMs() + 3_600_000
  await redis.hset('sluice:1:{clients}', 'ban * 192.0.2.1', `${endsAt} ${known}`, id, `${endsAt} ${json}`)
  await redis.zadd('sluice:1:{clients}:changes', wallClockMs() * 1000, id)
  const now = (): number => performance.now()
  const entries = new ClientEntries(now)
  const { log, lines } = recordLog()
  const options = {
    entries,
    redis,
    keyPrefix: 'sluice:1',
    isAnswering: () => true,
    timeoutMs: 5_000,
    now,
    log,
  }
  const store = new RedisEntryStore(options)
  onTestFinished(() => store.close())
  await store.ready()
  expect(entries.list('ban').map(({ id: found }) => found)).toEqual(['ban * 192.0.2.1'])
  await store.put({ kind: 'ban', partitionKey: '192.0.2.3', by: 'operator' }, 60_000)
  await store.ready()
  expect(lines.map(({ msg }) => msg)).toEqual([
    'some bans or overrides in Redis have no effect here: another version of the gateway has written them',
  ])
})
