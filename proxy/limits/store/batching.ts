import { afterInput } from '../../../shared/after-input.ts'
import type { Policy } from '../../policy.ts'
import { readLateAnswers, type LateAnswer } from './late-answers.ts'
import type { Charge, Decision, Reservation } from '../limiter.ts'
import { isOfOneCounter, reasonOf } from './redis/errors.ts'
import { readDecision, readTickets } from './store-replies.ts'

/** Counters that are kept outside this process: in Redis, or in the primary process. */
export type RemoteCounters = {
  /** Maximum number of charges in one batch. */
  readonly batchSize: number
  /**
   * With so many batches unanswered, new requests wait for an answer and share the next batch, unless that is full. So batches
   * grow as the store gets slower, and cost it less for each request. Without a maximum, no request waits.
   */
  readonly maxUnanswered?: number
  isConnected(): boolean
  /**
   * Decides a batch of requests in one round trip.
   *
   * @param isAwaited false once the batch has timed out: then nothing more may be sent
   * @returns two values for each charge, request by request: the remaining quota, or -1 where the quota is exceeded, and the
   *   milliseconds until the window ends; for a request that could not be decided, the reason in place of the first.
   *   Behind all these a value that is not looked at, and the tickets of the charges of which `takesUnits` holds, in
   *   the same order; they may be left out if there are none
   */
  ask(requests: readonly (readonly Charge[])[], isAwaited: () => boolean): Promise<readonly unknown[]>
  /** The store has counted a charge, as its answer says that came after the decision had been made without it. */
  answeredLate?(late: LateAnswer): void
  /** Whether `ask` rejecting with this error means that nothing was counted. */
  hasCountedNothing(error: unknown): boolean
}

/** Called with the outcome of each batch, and to decide without the store. */
export type DecisionHooks = {
  answered(durationMs: number): void
  /** The batch failed, was not sent or timed out, or the store could not decide; `reason` says which. */
  failed(reason: string): void
  /** The store answered, but the key of one of these policies does not hold a counter. */
  counterBroken(policies: readonly Policy[], reason: string): void
  /** Decides without the store. `uncertain`: the store may have counted the request. */
  decideWithout(charges: readonly Charge[], uncertain: boolean): Decision
  /** The store has let a request through and reserved this. */
  reserved?(reservation: Reservation): void
  /** The store refused. `askedAtMs` is earlier than the instant that the states refer to. */
  refused(charges: readonly Charge[], refusal: Decision & { outcome: 'refused' }, askedAtMs: number): void
}

export type Batching = {
  decide(charges: readonly Charge[]): Promise<Decision>
  /** Decides all pending requests without the store. */
  giveUp(): void
}

/**
 * Batches the requests of one turn of the event loop into one round trip to the store, or those that arrive while it is busy, with
 * a timeout from when the first of them arrived. A batch is never sent twice: the store may have counted it.
 *
 * @param options.now milliseconds of a monotonic clock
 */
export function createBatching(options: {
  readonly counters: RemoteCounters
  readonly timeoutMs: number
  readonly now: () => number
  readonly hooks: DecisionHooks
}): Batching {
  const { counters, timeoutMs, now, hooks } = options
  const { maxUnanswered = Infinity } = counters
  const awaited = new Set<Batch>()
  let next = createBatch()
  let isScheduled = false

  /** Sends the pending requests at the end of this turn, unless they have to wait for an answer, which calls this again. */
  function schedule(): void {
    if (isScheduled || next.requests.length === 0 || awaited.size >= maxUnanswered) return
    isScheduled = true
    setImmediate(() => {
      isScheduled = false
      if (awaited.size < maxUnanswered) send()
    })
  }

  function send(): void {
    const batch = next
    if (batch.requests.length === 0) return
    next = createBatch()
    if (!counters.isConnected()) {
      finish(batch)
      settleWithout(batch, false)
      hooks.failed('not connected')
      return
    }
    awaited.add(batch)
    batch.askedAtMs = now()
    counters
      .ask(batch.requests, () => awaited.has(batch))
      .then(
        (reply) => receive(batch, reply),
        (error: unknown) => fail(batch, error),
      )
  }

  function receive(batch: Batch, reply: readonly unknown[]): void {
    if (!finish(batch)) {
      for (const late of readLateAnswers(batch, reply)) counters.answeredLate?.(late)
      return
    }
    let failure: string | undefined
    let at = 0
    const tickets = readTickets(batch.chargeCount, reply)
    for (const [index, charges] of batch.requests.entries()) {
      const decision = readDecision(charges, reply, at, tickets)
      at += 2 * charges.length
      if (typeof decision !== 'string') {
        if (decision.outcome === 'refused') hooks.refused(charges, decision, batch.askedAtMs)
        else if (tickets)
          for (const { reservation } of decision.states) if (reservation) hooks.reserved?.(reservation)
        batch.settle[index]?.(decision)
        continue
      }
      if (isOfOneCounter(decision)) hooks.counterBroken(policiesOf(charges), reasonOf(decision))
      // All other errors count as failures of the store.
      else failure = reasonOf(decision)
      batch.settle[index]?.(hooks.decideWithout(charges, false))
    }
    if (failure === undefined) hooks.answered(now() - batch.askedAtMs)
    else hooks.failed(failure)
  }

  function fail(batch: Batch, error: unknown): void {
    if (!finish(batch)) return
    settleWithout(batch, !counters.hasCountedNothing(error))
    hooks.failed(reasonOf(error))
  }

  function expire(batch: Batch): void {
    afterInput(() => {
      const isUnsent = batch === next
      if (isUnsent) next = createBatch()
      else if (!finish(batch)) return
      settleWithout(batch, !isUnsent)
      hooks.failed(`no answer in ${timeoutMs} ms`)
    })
  }

  /** Stops waiting for a batch. Returns whether it was still awaited. */
  function finish(batch: Batch): boolean {
    clearTimeout(batch.deadline)
    const wasAwaited = awaited.delete(batch)
    if (wasAwaited) schedule()
    return wasAwaited
  }

  function settleWithout({ requests, settle, decidedWithout }: Batch, uncertain: boolean): void {
    for (const [index, charges] of requests.entries()) {
      const decision = hooks.decideWithout(charges, uncertain)
      if (uncertain) decidedWithout.push(decision)
      settle[index]?.(decision)
    }
  }

  return {
    decide(charges) {
      // A full batch waits for nothing: none is cheaper.
      if (next.chargeCount > 0 && next.chargeCount + charges.length > counters.batchSize) send()
      const batch = next
      batch.deadline ??= setTimeout(expire, timeoutMs, batch)
      batch.chargeCount += charges.length
      batch.requests.push(charges)
      schedule()
      return new Promise((resolve) => batch.settle.push(resolve))
    },
    giveUp() {
      const unsent = next
      next = createBatch()
      finish(unsent)
      settleWithout(unsent, false)
      for (const batch of awaited) if (finish(batch)) settleWithout(batch, true)
    },
  }
}

/** A batch that is being filled, or was sent. `settle[i]` resolves `requests[i]`. */
type Batch = {
  readonly requests: (readonly Charge[])[]
  readonly settle: ((decision: Decision) => void)[]
  /** By request, once nobody waits for the store any more. */
  readonly decidedWithout: Decision[]
  chargeCount: number
  askedAtMs: number
  deadline: NodeJS.Timeout | undefined
}

function createBatch(): Batch {
  return { requests: [], settle: [], decidedWithout: [], chargeCount: 0, askedAtMs: 0, deadline: undefined }
}

function policiesOf(charges: readonly Charge[]): Policy[] {
  return charges.map(({ policy }) => policy)
}
