import { createEmbeddedLimiter, createWorkerLimiter } from '../../proxy/limits/store/create-limiter.ts'
import { ServedLimiter } from '../../proxy/limits/store/workers/primary-limiter.ts'
import type { LimiterPort } from '../../proxy/limits/store/workers/worker-messages.ts'
import { limiterOptions } from '../support/limiter/limiters.ts'
import { describeLimiterContract } from './limiter-contract.ts'

/** The two ends of a channel between processes, which carries JSON and delivers it one turn of the event loop later. */
function makePorts(): { readonly worker: LimiterPort; readonly primary: LimiterPort } {
  const atWorker: ((message: unknown) => void)[] = []
  const atPrimary: ((message: unknown) => void)[] = []
  const carry = (message: object, receivers: typeof atWorker): true => {
    const text = JSON.stringify(message)
    setImmediate(() => receivers.forEach((receive) => receive(JSON.parse(text))))
    return true
  }
  return {
    worker: { send: (message) => carry(message, atPrimary), listen: (receive) => atWorker.push(receive) },
    primary: { send: (message) => carry(message, atWorker), listen: (receive) => atPrimary.push(receive) },
  }
}

describeLimiterContract('counters in the primary process, for two workers', (policies) => {
  let nowMs = 7_000
  const wallNow = (): number => Date.parse('2027-10-30T23:00Z') + Math.floor(nowMs)
  const embedded = createEmbeddedLimiter(limiterOptions({ now: () => nowMs, wallNow }))
  const workers = [0, 1].map(() => {
    const { worker, primary } = makePorts()
    new ServedLimiter({ counters: embedded, policies, port: primary })
    return createWorkerLimiter(worker, limiterOptions({ storeTimeoutMs: 2000 }))
  })
  return Promise.resolve({
    limiters: workers,
    operations: embedded,
    wallNow,
    advance: (durationMs) => void (nowMs += durationMs),
    close: () => workers.forEach((worker) => worker.close()),
  })
})
