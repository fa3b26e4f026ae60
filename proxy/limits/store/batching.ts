import { afterInput } from '../../../shared/after-input.ts'
import type { Policy } from '../../policy.ts'
import { readLateAnswers, type LateAnswer } from './late-answers.ts'
import type { Charge, Decision, Reservation } from '../limiter.ts'
import { isOfOneCounter, reasonOf } from './redis/errors.ts'
import { readDecision, readPlanNames, readTickets } from './store-replies.ts'

/** Counters that are kept outside this process: in Redis, or in the primary process. `Lane` names one of several servers. */
export type RemoteCounters<Lane = undefined> = {
  /** Maximum number of charges in one batch. */
  readonly batchSize: number
  /**
   * With so many batches unanswered, new requests wait for an answer and share the next batch, unless that is full. So batches
   * grow as the store gets slower, and cost it less for each request. Without a maximum, no request waits.
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
   * @returns two values for each charge, request by request: the remaining quota, or -1 where the quota is exceeded, and the
   *   milliseconds until the window ends; for a request that could not be decided, the reason in place of the first.
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
  /** The store answered, but the key of one of these policies does not hold a counter. */
  counterBroken(policies: readonly Policy[], reason: string): void
  /** Decides without the store. `uncertain`: the store may have counted the request. */
  decideWithout(charges: readonly Charge[], uncertain: boolean): Decision
  /** The store has let a request through and reserved this. */
  reserved?(reservation: Reservation): void
  /** The store refused. `askedAtMs` is earlier than the instant that the states refer to. */
  refused(charges: readonly Charge[], refusal: Decision & { outcome: 'refused' }, askedAtMs: number): void
}

export type Batching<Lane = undefined> = {
  decide(charges: readonly Charge[]): Promise<Decision>
  /** Decides all pending requests without the store, or those of some batches. */
  giveUp(isConcerned?: (batch: AskedBatch<Lane>) => boolean): void
}

/**
 * Batches the requests of one turn of the event loop into one round trip to the store, or those that arrive while it is busy, with
 * a timeout from when the first of them arrived. A batch is never sent twice: the store may have counted it. Where there are several
 * servers, each has batches of its own.
 *
 * @param options.now milliseconds of a monotonic clock
 */
export function createBatching<Lane = undefined>(options: {
  readonly counters: RemoteCounters<Lane>
  readonly timeoutMs: number
  readonly now: () => number
  readonly hooks: DecisionHooks<Lane>
}): Batching<Lane> {
  const { counters, timeoutMs, now, hooks } = options
  const { maxUnanswered = Infinity, lanes } = counters
  const awaited = new Set<Batch<Lane>>()
  const queues = new Map<Lane | undefined, Queue<Lane>>()
  /** Requests that are asked by themselves, at the end of this turn. */
  let alone: Batch<Lane>[] = []

  function queueOf(lane: Lane | undefined): Queue<Lane> {
    const known = queues.get(lane)
    if (known) return known
    const queue: Queue<Lane> = { lane, next: createBatch(lane), unanswered: 0, isScheduled: false }
    queues.set(lane, queue)
    return queue
  }

  /** Sends the pending requests at the end of this turn, unless they have to wait for an answer, which calls this again. */
  function schedule(queue: Queue<Lane>): void {
    if (queue.next.requests.length === 0) {
      // Servers come and go.
      if (queue.unanswered === 0) queues.delete(queue.lane)
      return
    }
    if (queue.isScheduled || queue.unanswered >= maxUnanswered) return
    queue.isScheduled = true
    setImmediate(() => {
      queue.isScheduled = false
      if (queue.unanswered < maxUnanswered) sendNext(queue)
    })
  }

  function sendNext(queue: Queue<Lane>): void {
    const batch = queue.next
    if (batch.requests.length === 0) return
    queue.next = createBatch(queue.lane)
    send(batch, queue)
  }

  function send(batch: Batch<Lane>, queue?: Queue<Lane>): void {
    if (!counters.isConnected()) {
      finish(batch)
      settleWithout(batch, false)
      hooks.failed('not connected', batch)
      return
    }
    awaited.add(batch)
    if (queue) {
      batch.queue = queue
      queue.unanswered += 1
    }
    batch.askedAtMs = now()
    counters
      .ask(batch.requests, () => awaited.has(batch), queue?.lane)
      .then(
        (reply) => receive(batch, reply),
        (error: unknown) => fail(batch, error),
      )
  }

  function askAlone(charges: readonly Charge[], settle: Settle, withinMs: number): void {
    const batch = createBatch<Lane>(undefined)
    add(batch, charges, settle, withinMs)
    if (alone.push(batch) > 1) return
    setImmediate(() => {
      const batches = alone
      alone = []
      lanes?.together(() => {
        for (const batch of batches) send(batch)
      })
    })
  }

  function add(batch: Batch<Lane>, charges: readonly Charge[], settle: Settle, withinMs: number): void {
    if (!batch.deadline) {
      batch.deadline = setTimeout(expire, withinMs, batch)
      batch.endsAtMs = now() + withinMs
    }
    batch.chargeCount += charges.length
    batch.requests.push(charges)
    batch.settle.push(settle)
  }

  /** The request was counted nowhere: asks again, for the rest of the time. */
  function askElsewhere(batch: Batch<Lane>, index: number): void {
    const [charges, settle] = [batch.requests[index], batch.settle[index]]
    if (charges && settle) askAlone(charges, settle, Math.max(0, batch.endsAtMs - now()))
  }

  function receive(batch: Batch<Lane>, reply: readonly unknown[]): void {
    if (!finish(batch)) {
      for (const late of readLateAnswers(batch, reply)) counters.answeredLate?.(late)
      return
    }
    let failure: string | undefined
    let at = 0
    const tickets = readTickets(batch.chargeCount, reply)
    const plans = readPlanNames(reply)
    for (const [index, charges] of batch.requests.entries()) {
      const decision = readDecision(charges, reply, at, tickets, plans)
      at += 2 * charges.length
      if (typeof decision !== 'string') {
        if (decision.outcome === 'refused') hooks.refused(charges, decision, batch.askedAtMs)
        else if (tickets)
          for (const { reservation } of decision.states) if (reservation) hooks.reserved?.(reservation)
        batch.settle[index]?.(decision)
        continue
      }
      if (batch.queue && lanes?.isElsewhere(decision)) {
        askElsewhere(batch, index)
        continue
      }
      if (isOfOneCounter(decision)) hooks.counterBroken(policiesOf(charges), reasonOf(decision))
      // All other errors count as failures of the store.
      else failure = reasonOf(decision)
      batch.settle[index]?.(hooks.decideWithout(charges, false))
    }
    if (failure === undefined) hooks.answered(now() - batch.askedAtMs, batch)
    else hooks.failed(failure, batch)
  }

  function fail(batch: Batch<Lane>, error: unknown): void {
    if (!finish(batch)) return
    const hasCountedNothing = counters.hasCountedNothing(error)
    if (batch.queue && hasCountedNothing && lanes?.isElsewhere(error)) {
      for (const index of batch.requests.keys()) askElsewhere(batch, index)
      return
    }
    settleWithout(batch, !hasCountedNothing)
    hooks.failed(reasonOf(error), batch)
  }

  function expire(batch: Batch<Lane>): void {
    afterInput(() => {
      const isUnsent = takeUnsent(batch)
      if (!isUnsent && !finish(batch)) return
      settleWithout(batch, !isUnsent)
      hooks.failed(`no answer in ${timeoutMs} ms`, batch)
    })
  }

  /** Takes a batch out of those that have not been sent. Returns whether it was one. */
  function takeUnsent(batch: Batch<Lane>): boolean {
    const queue = [...queues.values()].find(({ next }) => next === batch)
    if (queue) queue.next = createBatch(queue.lane)
    const at = alone.indexOf(batch)
    if (at >= 0) alone.splice(at, 1)
    return queue !== undefined || at >= 0
  }

  /** Stops waiting for a batch. Returns whether it was still awaited. */
  function finish(batch: Batch<Lane>): boolean {
    clearTimeout(batch.deadline)
    if (!awaited.delete(batch)) return false
    if (batch.queue) {
      batch.queue.unanswered -= 1
      schedule(batch.queue)
    }
    return true
  }

  function settleWithout({ requests, settle, decidedWithout }: Batch<Lane>, uncertain: boolean): void {
    for (const [index, charges] of requests.entries()) {
      const decision = hooks.decideWithout(charges, uncertain)
      if (uncertain) decidedWithout.push(decision)
      settle[index]?.(decision)
    }
  }

  return {
    decide(charges) {
      return new Promise((settle) => {
        const lane = lanes?.laneOf(charges)
        if (lanes && lane === undefined) {
          askAlone(charges, settle, timeoutMs)
          return
        }
        const queue = queueOf(lane)
        // A full batch waits for nothing: none is cheaper.
        const { chargeCount } = queue.next
        if (chargeCount > 0 && chargeCount + charges.length > counters.batchSize) sendNext(queue)
        add(queue.next, charges, settle, timeoutMs)
        schedule(queue)
      })
    },
    giveUp(isConcerned = () => true) {
      const unsent = [...alone, ...Array.from(queues.values(), ({ next }) => next)]
      for (const batch of unsent) {
        if (!isConcerned(batch)) continue
        takeUnsent(batch)
        finish(batch)
        settleWithout(batch, false)
      }
      for (const batch of awaited) if (isConcerned(batch) && finish(batch)) settleWithout(batch, true)
    },
  }
}

type Settle = (decision: Decision) => void

/** The requests for one server. */
type Queue<Lane> = {
  readonly lane: Lane | undefined
  /** It is being filled. */
  next: Batch<Lane>
  unanswered: number
  isScheduled: boolean
}

/** A batch that is being filled, or was sent. `settle[i]` resolves `requests[i]`. */
type Batch<Lane> = AskedBatch<Lane> & {
  readonly requests: (readonly Charge[])[]
  readonly settle: Settle[]
  /** By request, once nobody waits for the store any more. */
  readonly decidedWithout: Decision[]
  chargeCount: number
  askedAtMs: number
  deadline: NodeJS.Timeout | undefined
  endsAtMs: number
  /** It was sent for this; undefined for one that is asked by itself. */
  queue: Queue<Lane> | undefined
}

function createBatch<Lane>(lane: Lane | undefined): Batch<Lane> {
  return {
    lane,
    requests: [],
    settle: [],
    decidedWithout: [],
    chargeCount: 0,
    askedAtMs: 0,
    deadline: undefined,
    endsAtMs: 0,
    queue: undefined,
  }
}

function policiesOf(charges: readonly Charge[]): Policy[] {
  return charges.map(({ policy }) => policy)
}
