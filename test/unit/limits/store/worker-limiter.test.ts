import { expect, test } from 'vitest'
import { IpcLimiter } from '../../../../proxy/limits/store/workers/worker-limiter.ts'
import type { Decision } from '../../../../proxy/limits/limiter.ts'
import { chargeAll, makePolicy } from '../../../support/limiter/charges.ts'

const wide = makePolicy('wide', 1_000_000, 60_000)
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

type Sent = { readonly id: number; readonly requests: readonly unknown[] }

// Messages of a worker to a stopped primary process stay in the worker's memory, and clients determine their number.
test('a worker sends a bounded number of messages to a primary process that does not answer, and continues when it answers', async () => {
  const sent: Sent[] = []
  const reasons = new Set<string>()
  let receive: (message: unknown) => void = () => undefined
  const limiter = new IpcLimiter({
    port: {
      send: (message) => void sent.push(message as Sent),
      listen: (listener) => void (receive = listener),
    },
    timeoutMs: 5,
    now: () => performance.now(),
    hooks: {
      answered: () => undefined,
      failed: (reason) => reasons.add(reason),
      counterBroken: () => undefined,
      decideWithout: (_, uncertain) => ({ outcome: 'unavailable', uncertain }),
      refused: () => undefined,
    },
  })
  const decisions: Promise<Decision>[] = []
  const ask = async (): Promise<void> => {
    for (let i = 0; i < 1000; i++)
      decisions.push(Promise.resolve(limiter.decide(chargeAll(`client ${i}`, [wide]))))
    await nextTurn()
  }
  for (let turn = 0; turn < 200; turn++) await ask()
  const requests = (): number => sent.reduce((sum, question) => sum + question.requests.length, 0)
  expect(requests()).toBe(50_000)
  // Each request is still decided, including those that were not sent at once.
  expect(new Set((await Promise.all(decisions)).map(({ outcome }) => outcome))).toEqual(
    new Set(['unavailable']),
  )
  expect([...reasons].sort()).toEqual([
    '50000 requests to the primary process are unanswered',
    'no answer in 5 ms',
  ])

  for (const question of sent)
    receive({ limiter: 'answer', id: question.id, reply: question.requests.flatMap(() => [5, 1000]) })
  await ask()
  expect(requests()).toBe(51_000)
  limiter.close()
})
