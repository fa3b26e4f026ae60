import type { Worker } from 'node:cluster'
import { EventEmitter } from 'node:events'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { History } from '../../../proxy/admin/page/history.ts'
import type { HealthReport } from '../../../proxy/admin/health.ts'
import { WorkerReports } from '../../../proxy/admin/worker-reports.ts'
import type { Activity } from '../../../proxy/telemetry/metrics/activity.ts'
import { recordLog } from '../../support/limiter/recordings.ts'

const TIMEOUT_MS = 1_000

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

type Question = { readonly id: number; readonly what: string }

/** A worker that answers with `value`, at once or, while `value` is undefined, not at all. */
class FakeWorker extends EventEmitter {
  readonly asked: string[] = []
  value: object | undefined

  static in(reports: WorkerReports, value?: object): FakeWorker {
    const worker = new FakeWorker()
    worker.value = value
    reports.add(worker as unknown as Worker)
    worker.listens()
    return worker
  }

  listens(): void {
    this.emit('message', { report: 'hello' })
  }

  send({ id, what }: Question): void {
    this.asked.push(what)
    if (this.value) this.answer(id, what)
  }

  answer(id: number, what: string): void {
    this.emit('message', { report: 'answer', id, what, value: this.value })
  }
}

const allowed = (count: number): Activity => ({
  decisions: [
    ['login', { allowed: count, refused: 0, shadow: 0, routed: 0, local: 0, open: 0, unavailable: 0 }],
  ],
  requests: [0, 0, count, 0, 0, 0],
  connections: 1,
  breakerOpen: false,
})

const healthy = (status: HealthReport['status']): HealthReport => ({
  status,
  store: 'memory',
  upstream: 'available',
})

/** What a question resolves with, and after how many milliseconds. */
async function timed<T>(question: Promise<T>): Promise<{ afterMs: number; value: T }> {
  const found: T[] = []
  void question.then((value) => found.push(value))
  for (let afterMs = 0; ; afterMs += 100) {
    await vi.advanceTimersByTimeAsync(afterMs === 0 ? 0 : 100)
    for (const value of found) return { afterMs, value }
  }
}

test('counts of a worker that answers too late once are neither lost nor counted again', async () => {
  const reports = new WorkerReports(TIMEOUT_MS)
  const [first, second] = [FakeWorker.in(reports, allowed(500)), FakeWorker.in(reports, allowed(700))]
  let nowMs = 0
  const history = new History(
    async () => (await reports.readActivities()).all,
    () => nowMs,
    recordLog().log,
  )
  const sample = async (step: number): Promise<unknown> => {
    nowMs = step * 10_000
    return (await timed(history.sample())).value
  }
  await sample(0)
  first.value = allowed(510)
  second.value = undefined
  await sample(1)
  second.value = allowed(702)
  await sample(2)
  history.close()
  const [, counts] = history.read().rules[0] ?? []
  expect(counts).toEqual([1200, 10, 2])
})

test('the number of workers that answer leaves out those whose last activity is used, and those that have exited', async () => {
  const reports = new WorkerReports(TIMEOUT_MS)
  const [, late, gone] = [1, 2, 3].map((count) => FakeWorker.in(reports, allowed(count)))
  expect((await timed(reports.readActivities())).value).toEqual({
    all: [1, 2, 3].map(allowed),
    answered: 3,
  })
  Object.assign(late ?? {}, { value: undefined })
  gone?.emit('exit')
  expect((await timed(reports.readActivities())).value).toEqual({ all: [1, 2].map(allowed), answered: 1 })
})

test('a worker that does not listen yet is not waited for', async () => {
  const reports = new WorkerReports(TIMEOUT_MS)
  FakeWorker.in(reports, healthy('ready'))
  const starting = new FakeWorker()
  reports.add(starting as unknown as Worker)
  expect(await timed(reports.readHealth())).toEqual({ afterMs: 0, value: [healthy('ready')] })
  expect(starting.asked).toEqual([])
  starting.value = healthy('starting')
  starting.listens()
  expect((await timed(reports.readHealth())).value).toEqual([healthy('ready'), healthy('starting')])
})

test('a worker that hangs is waited for half as long once another has answered that it is ready', async () => {
  const reports = new WorkerReports(TIMEOUT_MS)
  FakeWorker.in(reports, healthy('ready'))
  FakeWorker.in(reports)
  expect(await timed(reports.readHealth())).toEqual({ afterMs: 500, value: [healthy('ready')] })
})

test('while no worker answers that it is ready, the others are waited for', async () => {
  const reports = new WorkerReports(TIMEOUT_MS)
  FakeWorker.in(reports, healthy('starting'))
  const late = FakeWorker.in(reports)
  FakeWorker.in(reports)
  expect(await timed(reports.readHealth())).toEqual({ afterMs: 1000, value: [healthy('starting')] })
  const question = timed(reports.readHealth())
  setTimeout(() => {
    late.value = healthy('ready')
    late.answer(2, 'health')
  }, 700)
  expect(await question).toEqual({ afterMs: 700, value: [healthy('starting'), healthy('ready')] })
})

test('questions about the health are one question to the workers while they have not answered', async () => {
  const reports = new WorkerReports(TIMEOUT_MS)
  const worker = FakeWorker.in(reports)
  const questions = Array.from({ length: 1000 }, () => reports.readHealth())
  expect(worker.asked).toEqual(['health'])
  worker.value = healthy('ready')
  worker.answer(1, 'health')
  expect(await Promise.all(questions)).toEqual(questions.map(() => [healthy('ready')]))
  await reports.readHealth()
  expect(worker.asked).toEqual(['health', 'health'])
})
