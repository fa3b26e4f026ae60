import { startRedisLimiter, waitUntilAnswering } from '../support/limiter/limiters.ts'
import type { LimiterSubject } from '../support/limiter/subject.ts'
import { startRedisCluster } from '../support/redis/redis-cluster.ts'
import { describeAnswersContract } from './answers-contract.ts'
import { describeBucketContract } from './bucket-contract.ts'
import { describeCalendarContract } from './calendar-contract.ts'
import { describeReservationContract } from './reservation-contract.ts'

async function startOnCluster(): Promise<LimiterSubject> {
  const cluster = await startRedisCluster(3, 0)
  const limiters = [startRedisLimiter(cluster.url, 20_000), startRedisLimiter(cluster.url, 20_000)]
  await Promise.all(limiters.map(({ connection }) => connection.connected(20_000)))
  await Promise.all(limiters.map(waitUntilAnswering))
  const [operations] = limiters
  if (!operations) throw new RangeError('at least one replica')
  return {
    limiters,
    operations,
    close() {
      for (const limiter of limiters) limiter.close()
      cluster.close()
    },
  }
}

describeReservationContract('two replicas on a cluster, reservations', startOnCluster)
describeCalendarContract('two replicas on a cluster, windows of the calendar', startOnCluster)
describeBucketContract('two replicas on a cluster, token buckets', startOnCluster)
describeAnswersContract('two replicas on a cluster, answers', startOnCluster)
