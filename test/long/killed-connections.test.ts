import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { makePolicy, newClient } from '../support/limiter/charges.ts'
import { startRedisLimiter } from '../support/limiter/limiters.ts'
import { judge } from '../fault/judge.ts'
import { openStage } from '../fault/stage.ts'

const KILLS = 100
const REQUESTS = 10_000
const BETWEEN_KILLS = REQUESTS / KILLS

test('with 100 killed connections to Redis, all admitted requests are counted, plus at most those in flight', async () => {
  const stage = await openStage(startRedisLimiter, 1)
  await stage.settled()
  const policy = makePolicy('many', 1_000_000, 600_000)
  const client = newClient()
  const kills: { readonly fromMs: number; readonly untilMs: number }[] = []
  for (let kill = 0; kill < KILLS; kill++) {
    const asked: Promise<unknown>[] = []
    const end = stage.trouble([0])
    const send = async (count: number): Promise<void> => {
      for (let sent = 0; sent < count; sent++) {
        asked.push(stage.ask(0, client, [policy]))
        if (sent % 5 === 4) await sleep(1)
      }
    }
    const sending = send(BETWEEN_KILLS)
    await stage.redis.operate(async (operator) => {
      await operator.ping()
      const fromMs = performance.now()
      await operator.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
      kills.push({ fromMs, untilMs: performance.now() })
    })
    await sending
    await Promise.all(asked)
    end()
    await stage.settled()
  }

  const history = await stage.historyOf(client, policy, true)
  const onTheirWay = history.attempts.filter(({ sentMs, answeredMs }) =>
    kills.some(({ fromMs, untilMs }) => sentMs <= untilMs && answeredMs >= fromMs),
  )
  const admitted = history.attempts.filter(({ outcome }) => outcome === 'allowed').length
  const counted = history.counted ?? NaN
  console.log(`${admitted} admitted, ${counted} counted, ${onTheirWay.length} on their way at ${KILLS} kills`)
  expect(judge(history)).toEqual([])
  expect(admitted).toBe(REQUESTS)
  expect(counted).toBeGreaterThanOrEqual(admitted)
  expect(counted - admitted).toBeLessThanOrEqual(onTheirWay.length)
  await stage.close()
})
