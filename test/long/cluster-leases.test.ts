import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { MAX_LEASE_AGE_MS } from '../../proxy/limits/store/leases/lease-store.ts'
import type { Decision } from '../../proxy/limits/limiter.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce } from '../support/limiter/decisions.ts'
import { waitUntilAnswering, type RunningLimiter } from '../support/limiter/limiters.ts'
import { startRedisCluster } from '../support/redis/redis-cluster.ts'
import { closeAfterTest, openLimiter } from '../support/redis/redis-limiters.ts'

const policy = makePolicy('api', 2000, 3_600_000, { lease: 'auto' })

test('gateways on a cluster use exactly the quota of each client, mostly without asking', async () => {
  const cluster = closeAfterTest(await startRedisCluster(3, 0))
  const limiters = await Promise.all(
    [1, 2].map(async (): Promise<RunningLimiter> => {
      const limiter = openLimiter(cluster.url, 5_000)
      await limiter.connection.connected(5_000)
      await waitUntilAnswering(limiter)
      return limiter
    }),
  )
  const clients = Array.from({ length: 6 }, newClient)
  const answers = clients.map((): (Decision | Promise<Decision>)[] => [])
  for (let turn = 0; turn < 300; turn++) {
    for (const [index, client] of clients.entries())
      for (const limiter of limiters)
        for (let asked = 0; asked < 5; asked++)
          answers[index]?.push(limiter.decide(chargeAll(client, [policy])))
    await sleep(1)
  }
  const all = answers.flat()
  expect(all.filter((answer) => !(answer instanceof Promise)).length).toBeGreaterThan(all.length / 4)
  const decisions = await Promise.all(
    answers.map((ofClient) => Promise.all(ofClient.map((answer) => Promise.resolve(answer)))),
  )
  await sleep(MAX_LEASE_AGE_MS)
  for (const [index, client] of clients.entries()) {
    const rest = await decideAtOnce(limiters, policy.quota, chargeAll(client, [policy]))
    expect(countAllowed([...(decisions[index] ?? []), ...rest])).toBe(policy.quota)
  }
})
