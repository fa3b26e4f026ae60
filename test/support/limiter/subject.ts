import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect } from 'vitest'
import type { Decision, Limiter } from '../../../proxy/limits/limiter.ts'
import type { CounterAdmin } from '../../../proxy/limits/store/counter-admin.ts'
import type { Policy } from '../../../proxy/policy.ts'
import { chargeAll, newClient } from './charges.ts'
import { atSomePace } from './paces.ts'

/** One kind of store under test. */
export type LimiterSubject = {
  /** One limiter, or several that share their counters, as replicas and workers do. */
  readonly limiters: readonly (Limiter & Partial<Pick<CounterAdmin, 'forget'>>)[]
  /** The operations that an operator uses. */
  readonly operations: CounterAdmin
  /** Advances the store's clock. Undefined if the store runs on real time. */
  readonly advance?: (durationMs: number) => void
  /** The store's time of day. Undefined if the store runs on real time. */
  readonly wallNow?: () => number
  readonly close: () => Promise<void> | void
}

export type StartSubject = (policies: readonly Policy[]) => Promise<LimiterSubject>

/** A subject, and the first of its limiters. */
export type OpenSubject = LimiterSubject & { readonly first: Limiter }

/** Starts a subject before the tests of a suite, and closes it after them. Only tests may read what it returns. */
export function openSubject(start: StartSubject, policies: readonly Policy[]): OpenSubject {
  const subject = {} as OpenSubject
  beforeAll(async () => {
    const started = await start(policies)
    const [first] = started.limiters
    if (!first) throw new Error('a subject has at least one limiter')
    Object.assign(subject, started, { first })
  })
  afterAll(() => subject.close())
  return subject
}

/** A request of one client, in milliseconds from its first one, and the expected answer. */
export type Instant = {
  readonly atMs: number
  readonly outcome: Decision['outcome']
  readonly remaining: number
  readonly resetMs: number
}

/**
 * Expects the answers of a table of instants. With a real clock, it is played at some pace.
 *
 * @param policies the policy for each pace, whose window is as many times longer
 * @param toleranceMs how far times may be off if the subject's clock can be set
 */
export async function expectInstants(
  { first, advance }: OpenSubject,
  instants: readonly Instant[],
  policies: { readonly instants: Policy; readonly instantsAt4: Policy; readonly instantsAt16: Policy },
  toleranceMs = 0.001,
): Promise<void> {
  const policyAt = new Map([
    [4, policies.instantsAt4],
    [16, policies.instantsAt16],
  ])
  const play = async (pace: number): Promise<void> => {
    const charges = chargeAll(newClient(), [policyAt.get(pace) ?? policies.instants])
    let nowMs = 0
    let startedAtMs: number | undefined
    for (const { atMs, outcome, remaining, resetMs } of instants) {
      if (advance) advance((atMs - nowMs) * pace)
      else if (startedAtMs !== undefined)
        await sleep(Math.max(0, startedAtMs + atMs * pace - performance.now()))
      nowMs = atMs
      const decision = await first.decide(charges)
      startedAtMs ??= performance.now()
      expect(decision, `at ${atMs} ms`).toMatchObject({ outcome, states: [{ remaining }] })
      const heardMs = decision.outcome === 'unavailable' ? NaN : (decision.states[0]?.resetMs ?? NaN)
      const offMs = Math.abs(heardMs - resetMs * pace)
      expect(offMs, `at ${atMs} ms: reset in ${heardMs} ms`).toBeLessThan(advance ? toleranceMs : 95 * pace)
    }
  }
  await (advance ? play(1) : atSomePace(play))
}
