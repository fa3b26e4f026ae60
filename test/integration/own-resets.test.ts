import type { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { ResetFeed } from '../../proxy/limits/store/redis/feeds/reset-feed.ts'
import { chargeAll, makePolicy } from '../support/limiter/charges.ts'
import { recordLog } from '../support/limiter/recordings.ts'
import { openRedis } from '../support/redis/redis-limiters.ts'
import { freshRedis } from '../support/redis/redis.ts'

const login = makePolicy('login', 5, 60_000)

function openFeed(redis: Redis): { readonly feed: ResetFeed; readonly heard: string[] } {
  const heard: string[] = []
  const feed = new ResetFeed({
    redis,
    keyPrefix: 'sluice:1',
    isAnswering: () => true,
    onReset: (partitionKey) => void heard.push(partitionKey),
    missed: () => undefined,
    now: () => performance.now(),
    log: recordLog().log,
  })
  onTestFinished(() => feed.close())
  return { feed, heard }
}

/** Calls `then` each time that a list has been read, before the reader gets it. */
function afterReading(redis: Redis, then: () => Promise<void>): Redis {
  return new Proxy(redis, {
    get(target, name) {
      if (name !== 'lrange') {
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      }
      return async (key: string, first: number, last: number) => {
        const texts = await target.lrange(key, first, last)
        await then()
        return texts
      }
    },
  })
}

test('a gateway does not take its own reset for one of another, if it was made while the list was read', async () => {
  const url = await freshRedis()
  let announceMeanwhile = (): Promise<void> => Promise.resolve()
  const near = openFeed(afterReading(openRedis(url), () => announceMeanwhile()))
  const far = openFeed(openRedis(url))
  // Both have read the list once.
  await near.feed.announce(chargeAll('before', [login]))
  await near.feed.catchUp()
  await far.feed.catchUp()
  near.heard.length = far.heard.length = 0

  announceMeanwhile = () => {
    announceMeanwhile = () => Promise.resolve()
    return near.feed.announce(chargeAll('own', [login]))
  }
  await far.feed.announce(chargeAll('of another', [login]))
  // A look may already be in progress.
  await near.feed.catchUp()
  await near.feed.catchUp()
  await near.feed.catchUp()
  expect(near.heard).toEqual(['of another'])
  await far.feed.catchUp()
  await far.feed.catchUp()
  expect(far.heard).toEqual(['own'])
})
