import type { Policy } from '../../policy.ts'
import type { Charge, Decision, Reservation } from '../limiter.ts'
import type { LateAnswer } from './late-answers.ts'

/** Counters that are kept outside this process: in Redis, or in the primary process. `Lane` names one of several servers. */
export type RemoteCounters<Lane = undefined> = {
  /** Maximum number of charges in one batch. */
  readonly batchSize: number
  /**
   * Maximum unanswered batches; beyond it, new requests share the next batch, unless that is full. So batches grow as the store gets
   * slower, and cost it less for each request. Without a maximum, no request waits.
   */
  readonly maxUnanswered?: number
  /** Whether there are several servers: `laneOf` says which one decides a request, if one alone can. Others are asked one by one. */
  readonly lanes?: {
    laneOf(charges: readonly Charge[]): Lane | undefined
    /** Whether a server replied that another one has the request's counters: nothing was counted, and it is asked by itself. */
    isElsewhere(error: unknown): boolean
    /** Calls `send`, which asks about several requests one by one. */
    together(send: () => void): void
  }
  isConnected(): boolean
  /**
   * Decides a batch of requests in one round trip.
   *
   * @param isAwaited false once the batch has timed out: then nothing more may be sent
   * @param lane undefined for a single request, where there are several servers
   * @returns two values for each charge, request by request: the remaining quota, or, where the charge exceeds it, -1 minus the remaining
   *   quota, and the milliseconds until the window ends; for a request that could not be decided, the reason in place of the first.
   *   Behind all these a value that is not looked at, and the tickets of the charges of which `takesUnits` holds, in
   *   the same order; they may be left out if there are none. At the end, where there is any charge of which `readsStoredPlan`
   *   holds, an array with the name of the plan for each such: empty without one
   */
  ask(
    requests: readonly (readonly Charge[])[],
    isAwaited: () => boolean,
    lane: Lane | undefined,
  ): Promise<readonly unknown[]>
  /** The store has counted a charge, as its answer says that came after the decision had been made without it. */
  answeredLate?(late: LateAnswer): void
  /** Whether `ask` rejecting with this error means that nothing was counted. */
  hasCountedNothing(error: unknown): boolean
}

/** The requests of a batch, and the server that was asked, where there are several and one alone was asked. */
export type AskedBatch<Lane = undefined> = {
  readonly requests: readonly (readonly Charge[])[]
  readonly lane: Lane | undefined
}

/** Called with the outcome of each batch, and to decide without the store. */
export type DecisionHooks<Lane = undefined> = {
  answered(durationMs: number, batch: AskedBatch<Lane>): void
  /** The batch failed, was not sent or timed out, or the store could not decide; `reason` says which. */
  failed(reason: string, batch: AskedBatch<Lane>): void
  /** Called when the store answered, but the key of one of these policies does not hold a counter. */
  counterBroken(policies: readonly Policy[], reason: string): void
  /** Decides without the store. `uncertain`: the store may have counted the request. */
  decideWithout(charges: readonly Charge[], uncertain: boolean): Decision
  /** The store has let a request through and reserved this. */
  reserved?(reservation: Reservation): void
  /** The store refused. `askedAtMs` is earlier than the instant that the states refer to. */
  refused(charges: readonly Charge[], refusal: Decision & { outcome: 'refused' }, askedAtMs: number): void
}
