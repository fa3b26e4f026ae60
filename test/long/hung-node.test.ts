import { Cluster } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { makePolicy } from '../support/limiter/charges.ts'
import { decideForEach } from '../support/limiter/decisions.ts'
import { startRedisLimiter } from '../support/limiter/limiters.ts'
import { startRedisCluster } from '../support/redis/redis-cluster.ts'
import { eventually } from '../support/wait/eventually.ts'

/*
 * After a node is lost, the limiter keeps asking the others which node serves its slots now. Until they have agreed that it is down, they
 * still name it, so the limiter connects to it again. It must not ask the hung node itself, which would be in vain.
 */

const wide = makePolicy('wide', 1_000_000, 600_000)
const clients = Array.from({ length: 30 }, (_, i) => `ip:192.0.2.${i}`)

test('a node of a cluster that hangs is not asked for the slots', async () => {
  const cluster = await startRedisCluster(3, 0)
  const limiter = startRedisLimiter(cluster.url, 100)
  onTestFinished(() => {
    limiter.close()
    cluster.close()
  })
  await limiter.connection.connected(5000)
  const { client } = limiter.connection
  if (!(client instanceof Cluster)) throw new TypeError('no cluster')
  const [hung] = cluster.nodes
  const isAt = (port: number | undefined): boolean => port === hung?.port
  await decideForEach(limiter, clients, [wide])

  await hung?.signal('SIGSTOP')
  await decideForEach(limiter, clients, [wide])
  await eventually('it is connected to again', () =>
    client.nodes().some(({ options, status }) => isAt(options.port) && status !== 'ready'),
  )
  const waitedFor: string[] = []
  client.on('node error', ({ message }: Error, node: string) => {
    if (isAt(Number(node.split(':')[1])) && message === 'timeout') waitedFor.push(message)
  })
  for (let asked = 0; asked < 20; asked++) {
    await new Promise((resolve) => {
      client.refreshSlotsCache(resolve)
    })
  }
  expect(waitedFor).toEqual([])
})
