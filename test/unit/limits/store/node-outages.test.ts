import { expect, test } from 'vitest'
import { MemoryLimiter } from '../../../../proxy/limits/store/memory/limiter.ts'
import { NodeOutages } from '../../../../proxy/limits/store/outage/node-outages.ts'
import type { RedisLimiter } from '../../../../proxy/limits/store/redis/limiter.ts'
import type { RedisNodes } from '../../../../proxy/limits/store/redis/nodes.ts'
import type { RedisClient } from '../../../../proxy/limits/store/redis/run-script.ts'
import { recordLog } from '../../../support/limiter/recordings.ts'
import { eventually } from '../../../support/wait/eventually.ts'

test('before the circuit breaker closes, Redis is sent the requests in flight that were admitted until then', async () => {
  const steps: string[] = []
  const shared = {
    findRefusal: () => Promise.resolve(undefined),
    probe: () => Promise.resolve(true),
    giveUp: () => undefined,
    renewInFlight: () => Promise.resolve(void steps.push('renewed')),
    sendInFlight: () => void steps.push('sent'),
  }
  const redis = { isCluster: false, status: 'ready', on: () => undefined, off: () => undefined }
  const nodes = { has: () => true, names: () => [''], ofKey: () => '', onMoved: () => () => undefined }
  const outages = new NodeOutages({
    redis: redis as unknown as RedisClient,
    nodes: nodes as unknown as RedisNodes,
    shared: shared as unknown as RedisLimiter,
    local: new MemoryLimiter({ maxKeys: 10, seed: 1, now: () => 0 }),
    forgetResets: () => Promise.resolve(),
    now: () => 0,
    log: recordLog().log,
    telemetry: { breakerChanged: (state) => void steps.push(state) },
  })
  for (let failure = 0; failure < 3; failure++) outages.failed('no answer', [''])
  await eventually('the circuit breaker is closed', () => !outages.breakers.isAnyOpen)
  expect(steps).toEqual(['open', 'renewed', 'sent', 'closed'])
  outages.close()
})
