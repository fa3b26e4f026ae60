import { expect, onTestFinished, test, vi } from 'vitest'
import { History } from '../../../proxy/admin/page/history.ts'
import type { Activity } from '../../../proxy/telemetry/metrics/activity.ts'
import { recordLog } from '../../support/limiter/recordings.ts'
import { eventually } from '../../support/wait/eventually.ts'

type Counted = Record<string, { allowed?: number; refused?: number; shadow?: number; local?: number }>

const none = { allowed: 0, refused: 0, shadow: 0, routed: 0, local: 0, open: 0, unavailable: 0 }
const STEP_MS = 10_000
const startMs = 1_000_000 * STEP_MS

function activityOf(counted: Counted): Activity {
  const decisions = Object.entries(counted).map(([name, some]) => [name, { ...none, ...some }] as const)
  return { decisions, requests: [], connections: 0, breakerOpen: false }
}

function open(): { history: History; at: (step: number, ...processes: Counted[]) => Promise<void> } {
  let nowMs = startMs
  let activities: Activity[] = []
  const history = new History(
    () => Promise.resolve(activities),
    () => nowMs,
    recordLog().log,
  )
  onTestFinished(() => history.close())
  return {
    history,
    async at(step, ...processes) {
      nowMs = startMs + step * STEP_MS
      activities = processes.map(activityOf)
      await history.sample()
    },
  }
}

/** The steps of each rule that are not all zero, by their distance from the start. */
function shown({ history }: Pick<ReturnType<typeof open>, 'history'>): object {
  const { first, rules } = history.read()
  return Object.fromEntries(
    rules.map(([name, allowed, refused, shadow]) => [
      name,
      Object.fromEntries(
        allowed.flatMap((count, index) => {
          const counts = [count, refused[index], shadow[index]]
          return counts.some(Boolean) ? [[first + index - 1_000_000, counts]] : []
        }),
      ),
    ]),
  )
}

test('counts of all processes go to the history step in which they were made', async () => {
  const opened = open()
  await opened.at(0, { api: { allowed: 2 } }, { api: { allowed: 1, refused: 4 } })
  await opened.at(0.9, { api: { allowed: 3 } }, { api: { allowed: 1, refused: 4 } })
  await opened.at(
    3,
    { api: { allowed: 3, local: 2 }, trial: { shadow: 7 } },
    { api: { allowed: 1, refused: 5 } },
  )
  expect(shown(opened)).toEqual({ api: { 0: [4, 4, 0], 3: [2, 1, 0] }, trial: { 3: [0, 0, 7] } })
  expect(opened.history.read()).toMatchObject({ stepSeconds: 10, first: 1_000_000, last: 1_000_003 })
})

test('the history drops values older than fifteen minutes', async () => {
  const opened = open()
  await opened.at(0, { api: { allowed: 5 }, old: { allowed: 1 } })
  await opened.at(50, { api: { allowed: 6 }, old: { allowed: 1 } })
  await opened.at(89, { api: { allowed: 6 }, old: { allowed: 1 } })
  expect(shown(opened)).toEqual({ api: { 0: [5, 0, 0], 50: [1, 0, 0] }, old: { 0: [1, 0, 0] } })
  await opened.at(90, { api: { allowed: 8 }, old: { allowed: 1 } })
  expect(shown(opened)).toEqual({ api: { 50: [1, 0, 0], 90: [2, 0, 0] } })
  expect(opened.history.read().first).toBe(1_000_001)
  await opened.at(500, { api: { allowed: 8 }, old: { allowed: 1 } })
  expect(shown(opened)).toEqual({})
})

test('a restarted worker counts from 0, and the history shows no negative numbers', async () => {
  const opened = open()
  await opened.at(0, { api: { allowed: 50 } }, { api: { allowed: 50 } })
  await opened.at(1, { api: { allowed: 50 } }, {})
  await opened.at(2, { api: { allowed: 50 } }, { api: { allowed: 3 } })
  expect(shown(opened)).toEqual({ api: { 0: [100, 0, 0], 2: [3, 0, 0] } })
})

test('the history bounds the number of rules, and sends those with the most requests', async () => {
  const opened = open()
  const rules = Object.fromEntries(
    Array.from({ length: 3_000 }, (_, index) => [`rule-${index}`, { allowed: index + 1 }]),
  )
  await opened.at(0, rules)
  const { rules: sent } = opened.history.read()
  expect(sent).toHaveLength(200)
  expect(sent[0]?.[0]).toBe('rule-999')
})

test('an error of the reading that nobody asked for is logged', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const { log, lines } = recordLog()
  const history = new History(() => Promise.reject(new Error('no worker answers')), Date.now, log)
  onTestFinished(() => history.close())
  vi.advanceTimersByTime(STEP_MS)
  await eventually('it is logged', () =>
    expect(lines).toMatchObject([{ err: { message: 'no worker answers' } }]),
  )
})
