import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { createWorkerLimiter } from '../../proxy/limits/store/create-limiter.ts'
import { ServedLimiter } from '../../proxy/limits/store/workers/primary-limiter.ts'
import type { LimiterPort } from '../../proxy/limits/store/workers/worker-messages.ts'
import { chargeAll, makePolicy } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce } from '../support/limiter/decisions.ts'
import { limiterOptions } from '../support/limiter/limiters.ts'
import { recordLog, recordTelemetry } from '../support/limiter/recordings.ts'
import { runNode } from '../support/gateway/process.ts'

const login = makePolicy('login', 5, 60_000)
const strict = makePolicy('strict', 5, 60_000, { onStoreError: 'closed' })

test('three real workers let exactly the quota through together', async () => {
  const { status, stdout, stderr } = await runNode('test/support/limiter/limiter-workers.ts', {}, ['3'])
  expect(stderr).toBe('')
  expect(status).toBe(0)
  const allowed = [...stdout.matchAll(/allowed (\d+) of 500/g)].map(([, count]) => Number(count))
  expect(allowed).toHaveLength(3)
  expect(allowed.reduce((sum, count) => sum + count, 0)).toBe(137)
})

describe('a primary process', () => {
  test('a primary process that hangs delays requests by the timeout at most; each rule applies its onStoreError', async () => {
    const { log, lines } = recordLog()
    const telemetry = recordTelemetry()
    const silent: LimiterPort = { send: () => undefined, listen: () => undefined }
    const limiter = createWorkerLimiter(silent, limiterOptions({ storeTimeoutMs: 50, log, telemetry }))
    // This timer is due after theirs in the same process, so it fires after them, no matter how busy the machine is.
    const decisions = await Promise.race([
      decideAtOnce([limiter], 8, chargeAll('ip:1', [login])),
      sleep(150, []),
    ])
    expect(countAllowed(decisions)).toBe(5)
    expect(await limiter.decide(chargeAll('ip:1', [strict]))).toEqual({
      outcome: 'unavailable',
      uncertain: true,
    })
    expect(telemetry).toMatchObject({ answers: 0, failures: 2 })
    expect(lines.map(({ msg }) => msg)).toEqual(['primary process unavailable: applying onStoreError'])
  })

  test('a primary process that has exited delays no request', async () => {
    const gone: LimiterPort = {
      send: () => {
        throw new Error('Channel closed')
      },
      listen: () => undefined,
    }
    const limiter = createWorkerLimiter(gone, limiterOptions({ storeTimeoutMs: 10_000 }))
    const decisions = decideAtOnce([limiter], 8, chargeAll('ip:1', [login]))
    expect(countAllowed(await Promise.race([decisions, sleep(100, [])]))).toBe(5)
  })

  test('a primary process with another table does not decide for a rule that it does not know', async () => {
    let answer: (message: unknown) => unknown = () => undefined
    let ask: (message: unknown) => unknown = () => undefined
    new ServedLimiter({
      counters: { decide: () => expect.unreachable(), settle: () => expect.unreachable() },
      policies: [login],
      port: { send: (message) => void answer(message), listen: (receive) => void (ask = receive) },
    })
    const limiter = createWorkerLimiter(
      { send: (message) => void ask(message), listen: (receive) => void (answer = receive) },
      limiterOptions(),
    )
    expect(await limiter.decide(chargeAll('ip:1', [strict]))).toEqual({
      outcome: 'unavailable',
      uncertain: false,
    })
  })
})
