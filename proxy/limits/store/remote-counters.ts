import type { Policy } from '../../policy.ts'
import type { Charge, Decision, Reservation } from '../limiter.ts'
import type { LateAnswer } from './late-answers.ts'

/** Counters that are kept outside this process: in Redis, or in the primary process. `Lane` names one of several servers. */
export type RemoteCounters<Lane = undefined> = {
  /** Maximum number of charges in one batch. */
  readonly batchSize: number
  /**
   * Maximum number of unanswered batches. Beyond it, new requests share the next batch, unless that batch is full. So batches grow as the
   * store gets slower, and each request costs the store less. Without a maximum, no request waits.
   */
  readonly maxUnanswered?: number
  /** Set if there are several servers. `laneOf` returns the server that can decide a request alone; other requests are asked one by one. */
  readonly lanes?: {
    laneOf(charges: readonly Charge[]): Lane | undefined
    /** Whether a server replied that another one has the request's counters. Nothing was counted, and the request is asked by itself. */
    isElsewhere(error: unknown): boolean
    /** Calls `send`, which asks about several requests one by one. */
    together(send: () => void): void
  }
  isConnected(): boolean
  /**
   * Decides a batch of requests in one round trip.
   *
   * @param isAwaited false once the batch has timed out: then nothing more may be sent
   * @param lane the server to ask; undefined if there is only one, or if the request is asked by itself
   * @returns two values for each charge, request by request: the remaining quota or, if the charge exceeds it, -1 minus the remaining
   *   quota; and the milliseconds until the window ends. For a request that could not be decided, the reason replaces the first value.
   *   Then follow the time of counting, which only `readLateAnswers` passes on and may be any value if it is not known, and the tickets of
   *   the charges for which `takesUnits` holds, in the same order; both may be left out if there are no tickets. If `readsStoredPlan` holds
   *   for any charge, the last value is an array with the name of the plan for each such charge, empty for a charge without one
   */
  ask(
    requests: readonly (readonly Charge[])[],
    isAwaited: () => boolean,
    lane: Lane | undefined,
  ): Promise<readonly unknown[]>
  /** Called if the store has counted a charge, according to an answer that came after the decision was made without the store. */
  answeredLate?(late: LateAnswer): void
  /** Whether `ask` rejecting with this error means that nothing was counted. */
  hasCountedNothing(error: unknown): boolean
}

/** The requests of a batch, and the server that was asked; undefined if there is only one, or if the request was asked by itself. */
export type AskedBatch<Lane = undefined> = {
  readonly requests: readonly (readonly Charge[])[]
  readonly lane: Lane | undefined
}

/** Called with the outcome of each batch, and to decide without the store. */
export type BatchHooks<Lane = undefined> = {
  answered(durationMs: number, batch: AskedBatch<Lane>): void
  /** The batch failed, was not sent or timed out, or the store could not decide; `reason` says which. */
  failed(reason: string, batch: AskedBatch<Lane>): void
  /** Called when the store answered, but the key of one of these policies does not hold a counter. */
  counterBroken(policies: readonly Policy[], reason: string): void
  /** Decides without the store. `uncertain`: the store may have counted the request. */
  decideWithout(charges: readonly Charge[], uncertain: boolean): Decision
  /** Called when the store has allowed a request and made this reservation. */
  reserved?(reservation: Reservation): void
  /** Called when the store has refused a request. `askedAtMs` is earlier than the instant that the states refer to. */
  refused(charges: readonly Charge[], refusal: Decision & { outcome: 'refused' }, askedAtMs: number): void
}
