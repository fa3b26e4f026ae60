import { afterInput } from '../../../shared/after-input.ts'
import type { Charge, Decision } from '../limiter.ts'
import { readLateAnswers } from './late-answers.ts'
import { isOfOneCounter, reasonOf } from './redis/errors.ts'
import type { AskedBatch, BatchHooks, RemoteCounters } from './remote-counters.ts'
import { BatchReply } from './store-replies.ts'

/**
 * Batches the requests of one turn of the event loop, or those that arrive while the store is busy, into one round trip to the store. The
 * timeout starts when the first request of a batch arrives. A batch is never sent twice, because the store may have counted it. If there
 * are several servers, each has its own batches.
 *
 * `decide` adds a request to the batch of its server's queue, and `#send` sends the batch at the end of the turn. The reply (`#receive`),
 * an error (`#fail`) or the deadline (`#expire`) finishes the batch, whichever comes first.
 */
export class Batching<Lane = undefined> {
  readonly #counters: RemoteCounters<Lane>
  readonly #hooks: BatchHooks<Lane>
  readonly #timeoutMs: number
  readonly #now: () => number
  /** By server, while requests for it are pending or unanswered. */
  readonly #queues = new Map<Lane | undefined, Queue<Lane>>()
  /** Requests that are asked by themselves, at the end of this turn. */
  #alone: Batch<Lane>[] = []
  /** The batches that were sent and are not finished. */
  readonly #awaited = new Set<Batch<Lane>>()

  /** @param options.now milliseconds of a monotonic clock */
  constructor(options: {
    readonly counters: RemoteCounters<Lane>
    readonly timeoutMs: number
    readonly now: () => number
    readonly hooks: BatchHooks<Lane>
  }) {
    this.#counters = options.counters
    this.#hooks = options.hooks
    this.#timeoutMs = options.timeoutMs
    this.#now = options.now
  }

  decide(charges: readonly Charge[]): Promise<Decision> {
    return new Promise((settle) => {
      const { lanes, batchSize } = this.#counters
      const lane = lanes?.laneOf(charges)
      if (lanes && lane === undefined) {
        this.#askAlone(charges, settle, this.#timeoutMs)
        return
      }
      const queue = this.#queueOf(lane)
      // A full batch is sent at once: a larger one would not be cheaper.
      const { chargeCount } = queue.next
      if (chargeCount > 0 && chargeCount + charges.length > batchSize) this.#sendNext(queue)
      this.#add(queue.next, charges, settle, this.#timeoutMs)
      this.#schedule(queue)
    })
  }

  /** Decides pending requests without the store: all of them, or those of the batches that `isConcerned` selects. */
  giveUp(isConcerned: (batch: AskedBatch<Lane>) => boolean = () => true): void {
    const unsent = [...this.#alone, ...Array.from(this.#queues.values(), ({ next }) => next)]
    for (const batch of unsent) {
      if (!isConcerned(batch)) continue
      this.#removeUnsent(batch)
      this.#finish(batch)
      this.#settleWithout(batch, false)
    }
    for (const batch of this.#awaited)
      if (isConcerned(batch) && this.#finish(batch)) this.#settleWithout(batch, true)
  }

  #queueOf(lane: Lane | undefined): Queue<Lane> {
    const known = this.#queues.get(lane)
    if (known) return known
    const queue: Queue<Lane> = { lane, next: createBatch(lane), unanswered: 0, isScheduled: false }
    this.#queues.set(lane, queue)
    return queue
  }

  #add(batch: Batch<Lane>, charges: readonly Charge[], settle: Settle, withinMs: number): void {
    if (!batch.deadline) {
      batch.deadline = setTimeout(this.#expire, withinMs, batch)
      batch.endsAtMs = this.#now() + withinMs
    }
    batch.chargeCount += charges.length
    batch.requests.push(charges)
    batch.settle.push(settle)
  }

  /** Sends the pending requests at the end of this turn. If they have to wait for an answer, the answer calls this method again. */
  #schedule(queue: Queue<Lane>): void {
    if (queue.next.requests.length === 0) {
      // Servers of a cluster come and go, so an unused queue is removed.
      if (queue.unanswered === 0) this.#queues.delete(queue.lane)
      return
    }
    if (queue.isScheduled || this.#isBusy(queue)) return
    queue.isScheduled = true
    setImmediate(() => {
      queue.isScheduled = false
      if (!this.#isBusy(queue)) this.#sendNext(queue)
    })
  }

  #isBusy({ unanswered }: Queue<Lane>): boolean {
    const { maxUnanswered } = this.#counters
    return maxUnanswered !== undefined && unanswered >= maxUnanswered
  }

  #sendNext(queue: Queue<Lane>): void {
    const batch = queue.next
    if (batch.requests.length === 0) return
    queue.next = createBatch(queue.lane)
    this.#send(batch, queue)
  }

  #askAlone(charges: readonly Charge[], settle: Settle, withinMs: number): void {
    const batch = createBatch<Lane>(undefined)
    this.#add(batch, charges, settle, withinMs)
    if (this.#alone.push(batch) > 1) return
    setImmediate(() => {
      const batches = this.#alone
      this.#alone = []
      this.#counters.lanes?.together(() => {
        for (const batch of batches) this.#send(batch)
      })
    })
  }

  #send(batch: Batch<Lane>, queue?: Queue<Lane>): void {
    if (!this.#counters.isConnected()) {
      this.#finish(batch)
      this.#settleWithout(batch, false)
      this.#hooks.failed('not connected', batch)
      return
    }
    this.#awaited.add(batch)
    if (queue) {
      batch.queue = queue
      queue.unanswered += 1
    }
    batch.askedAtMs = this.#now()
    this.#counters
      .ask(batch.requests, () => this.#awaited.has(batch), queue?.lane)
      .then(
        (reply) => this.#receive(batch, reply),
        (error: unknown) => this.#fail(batch, error),
      )
  }

  #receive(batch: Batch<Lane>, values: readonly unknown[]): void {
    if (!this.#finish(batch)) {
      const sinceAskedMs = this.#now() - batch.askedAtMs
      for (const late of readLateAnswers(batch, values, sinceAskedMs)) this.#counters.answeredLate?.(late)
      return
    }
    const failure = this.#settleAnswered(batch, new BatchReply(values, batch.chargeCount))
    if (failure === undefined) this.#hooks.answered(this.#now() - batch.askedAtMs, batch)
    else this.#hooks.failed(failure, batch)
  }

  /** @returns why the store could not decide a request, if that counts as a failure of the store */
  #settleAnswered(batch: Batch<Lane>, reply: BatchReply): string | undefined {
    let failure: string | undefined
    for (const [index, charges] of batch.requests.entries()) {
      const decision = reply.readDecision(charges)
      if (typeof decision === 'string') failure = this.#settleUndecided(batch, index, decision) ?? failure
      else {
        if (decision.outcome === 'refused') this.#hooks.refused(charges, decision, batch.askedAtMs)
        else if (reply.hasTickets) this.#recordReservations(decision)
        batch.settle[index]?.(decision)
      }
    }
    return failure
  }

  #recordReservations({ states }: Decision & { outcome: 'allowed' }): void {
    for (const { reservation } of states) if (reservation) this.#hooks.reserved?.(reservation)
  }

  /** @returns the error if it counts as a failure of the store; undefined if only one key is broken, or if another server has the key */
  #settleUndecided(batch: Batch<Lane>, index: number, error: string): string | undefined {
    const charges = batch.requests[index] ?? []
    if (batch.queue && this.#counters.lanes?.isElsewhere(error)) {
      this.#askElsewhere(batch, index)
      return undefined
    }
    const isOfKey = isOfOneCounter(error)
    const reason = reasonOf(error)
    if (isOfKey) {
      const policies = charges.map(({ policy }) => policy)
      this.#hooks.counterBroken(policies, reason)
    }
    batch.settle[index]?.(this.#hooks.decideWithout(charges, false))
    return isOfKey ? undefined : reason
  }

  /** Asks again about a request that was counted nowhere, with the time that is left. */
  #askElsewhere(batch: Batch<Lane>, index: number): void {
    const [charges, settle] = [batch.requests[index], batch.settle[index]]
    if (charges && settle) this.#askAlone(charges, settle, Math.max(0, batch.endsAtMs - this.#now()))
  }

  #fail(batch: Batch<Lane>, error: unknown): void {
    if (!this.#finish(batch)) return
    const hasCountedNothing = this.#counters.hasCountedNothing(error)
    if (batch.queue && hasCountedNothing && this.#counters.lanes?.isElsewhere(error)) {
      for (const index of batch.requests.keys()) this.#askElsewhere(batch, index)
      return
    }
    this.#settleWithout(batch, !hasCountedNothing)
    this.#hooks.failed(reasonOf(error), batch)
  }

  /** Called at the deadline. An answer that has arrived by then but was not read yet still counts. */
  readonly #expire = (batch: Batch<Lane>): void => {
    afterInput(() => {
      const isUnsent = this.#removeUnsent(batch)
      if (!isUnsent && !this.#finish(batch)) return
      this.#settleWithout(batch, !isUnsent)
      this.#hooks.failed(`no answer in ${this.#timeoutMs} ms`, batch)
    })
  }

  /** Removes a batch that has not been sent. Returns false if it was sent before. */
  #removeUnsent(batch: Batch<Lane>): boolean {
    const queue = [...this.#queues.values()].find(({ next }) => next === batch)
    if (queue) queue.next = createBatch(queue.lane)
    const at = this.#alone.indexOf(batch)
    if (at >= 0) this.#alone.splice(at, 1)
    return queue !== undefined || at >= 0
  }

  /** Stops waiting for a batch. Returns whether it was still awaited. */
  #finish(batch: Batch<Lane>): boolean {
    clearTimeout(batch.deadline)
    if (!this.#awaited.delete(batch)) return false
    if (batch.queue) {
      batch.queue.unanswered -= 1
      this.#schedule(batch.queue)
    }
    return true
  }

  #settleWithout({ requests, settle, decidedWithout }: Batch<Lane>, uncertain: boolean): void {
    for (const [index, charges] of requests.entries()) {
      const decision = this.#hooks.decideWithout(charges, uncertain)
      if (uncertain) decidedWithout.push(decision)
      settle[index]?.(decision)
    }
  }
}

type Settle = (decision: Decision) => void

/** The requests for one server. */
type Queue<Lane> = {
  readonly lane: Lane | undefined
  /** The batch that is being filled. */
  next: Batch<Lane>
  unanswered: number
  isScheduled: boolean
}

/** A batch that is being filled, or was sent. `settle[i]` resolves `requests[i]`. */
type Batch<Lane> = AskedBatch<Lane> & {
  readonly requests: (readonly Charge[])[]
  readonly settle: Settle[]
  /** By request, the decisions made without the store when it was late. */
  readonly decidedWithout: Decision[]
  chargeCount: number
  askedAtMs: number
  deadline: NodeJS.Timeout | undefined
  endsAtMs: number
  /** The queue that it was sent from; undefined for a request that is asked by itself. */
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
