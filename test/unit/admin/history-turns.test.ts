import { setImmediate } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { History } from '../../../proxy/admin/page/history.ts'
import type { Activity } from '../../../proxy/telemetry/metrics/activity.ts'
import { createMetrics } from '../../../proxy/telemetry/metrics/metrics.ts'
import { leastTime } from '../../support/load/least-time.ts'
import { makePolicy } from '../../support/limiter/charges.ts'
import { recordLog } from '../../support/limiter/recordings.ts'

/*
 * Every ten seconds the history reads the counts of all rules. With ten thousand rules that once took 12 to 25 ms of CPU in one turn, which
 * delayed all requests.
 */

const RULES = 30_000

/** The CPU time of this thread during the work: in total, and in the longest turn of the event loop. */
async function measureTurns(
  work: () => Promise<void>,
): Promise<{ readonly allUs: number; readonly longestUs: number }> {
  const readUs = (): number => {
    const { user, system } = process.threadCpuUsage()
    return user + system
  }
  const progress = { isDone: false }
  let longestUs = 0
  const beganUs = readUs()
  let beforeUs = beganUs
  const done = work().finally(() => (progress.isDone = true))
  while (!progress.isDone) {
    await setImmediate()
    const nowUs = readUs()
    longestUs = Math.max(longestUs, nowUs - beforeUs)
    beforeUs = nowUs
  }
  await done
  return { allUs: beforeUs - beganUs, longestUs }
}

test('a sample of many rules is taken in several turns of the event loop', async () => {
  const decisions: Activity['decisions'] = Array.from({ length: RULES }, (_, rule) => [
    `rule-${rule}`,
    { allowed: 1 + rule, refused: 0, shadow: 0, routed: 0, local: 0, open: 0, unavailable: 0 },
  ])
  const activity: Activity = { decisions, requests: [], connections: 0, breakerOpen: false }
  const history = new History(() => Promise.resolve([activity]), Date.now, recordLog().log)
  onTestFinished(() => history.close())
  const share = await leastTime(0.7, async () => {
    const { allUs, longestUs } = await measureTurns(() => history.sample())
    return longestUs / allUs
  })
  // If all the work is done in one turn, the share is 1. A turn may include a garbage collection.
  expect(share).toBeLessThan(0.7)
})

test('rules that have counted nothing are not read', () => {
  const policies = Array.from({ length: 10 }, (_, rule) => makePolicy(`rule-${rule}`, 1, 1_000))
  const readNode = (): Promise<never[]> => Promise.resolve([])
  const metrics = createMetrics({ policies, limitsEnabled: true, version: '1.2.3', readNode })
  expect(metrics.readActivity().decisions).toEqual([])
  const [first] = policies
  metrics.telemetry.decided(first ?? makePolicy('none', 1, 1), 'refused')
  expect(metrics.readActivity().decisions.map(([name]) => name)).toEqual(['rule-0'])
})
