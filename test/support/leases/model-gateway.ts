import type { Charge, Decision } from '../../../proxy/limits/limiter.ts'
import type { LeaseStore } from '../../../proxy/limits/store/leases/lease-store.ts'
import { Leasing } from '../../../proxy/limits/store/leases/leasing.ts'
import { OverLimitCache } from '../../../proxy/limits/store/over-limit-cache.ts'
import { reservedUnits } from '../../../proxy/policy.ts'
import type { ModelCounters, Window } from './model-counters.ts'
import type { VirtualTime } from './virtual-time.ts'

/**
 * - `lost before`: a command does not arrive
 * - `lost after`: a command arrives, but its reply does not
 * - `stale`: a command arrives long after the gateway has given up
 */
export type LinkFault = 'lost before' | 'lost after' | 'stale'

export type Watch = {
  readonly admitted: (charge: Charge, window: Window | undefined) => void
  readonly refused: (charge: Charge) => void
}

/** Changes a lease store as a defect would. */
export type Defect = (store: LeaseStore) => LeaseStore

export const LATENCY_MS = 3
const TIMEOUT_MS = 100
const STALE_MS = 2000
/** How long refusals are cached, for policies with leases. */
const REFUSED_FOR_MS = 250

/** A gateway with the real leases on model counters, over a connection that delays and loses commands. */
export class ModelGateway {
  readonly #time: VirtualTime
  readonly #random: () => number
  readonly #counters: ModelCounters
  readonly #defect: Defect
  #leasing: Leasing
  /** Counts the lives of the gateway: after each crash, a new one takes its place. */
  #incarnation = 0
  #pausedUntilMs = 0
  #fault: LinkFault | undefined
  #faultUntilMs = 0
  #arrivedMs = 0
  /** The window in which the shared counters have counted each charge. */
  readonly #countedIn = new Map<Charge, Window>()
  readonly #asked = new Set<Charge>()
  /** When the last command was sent: everything sent at the same time is one command. */
  #sentMs = -1
  #commands = 0

  constructor(time: VirtualTime, random: () => number, counters: ModelCounters, defect: Defect) {
    this.#time = time
    this.#random = random
    this.#counters = counters
    this.#defect = defect
    this.#leasing = this.#start()
  }

  /** The number of commands sent; everything sent at the same time is one command. */
  get commands(): number {
    return this.#commands
  }

  get isPaused(): boolean {
    return this.#time.now() < this.#pausedUntilMs
  }

  break(fault: LinkFault, untilMs: number): void {
    this.#fault = fault
    this.#faultUntilMs = untilMs
  }

  /** Does nothing until then, while its clock goes on. */
  pause(untilMs: number): void {
    this.#pausedUntilMs = untilMs
  }

  crash(): void {
    this.#incarnation += 1
    this.#leasing = this.#start()
  }

  /** Gives back all leases, as when the table of limits has changed. */
  giveBackAll(): void {
    this.#leasing.giveBackAll()
  }

  /**
   * Decides a request.
   *
   * @param watch.admitted called for each charge of an admitted request, with the window that counted it: the current one if the charge
   *   uses leased units; undefined if no window did
   * @param watch.refused called with the charge that refused the request
   * @returns whether it was decided without the shared counters
   */
  decide(charges: readonly Charge[], { admitted, refused }: Watch): boolean {
    const incarnation = this.#incarnation
    const answer = this.#leasing.decide(charges)
    const now = new Map(charges.map((charge) => [charge, this.#counters.windowOf(charge)]))
    const finish = (decision: Decision): void => {
      for (const charge of charges) {
        const counted = this.#countedIn.get(charge)
        if (counted) counted.unanswered -= unitsOf(charge)
        this.#countedIn.delete(charge)
        const window = this.#asked.delete(charge) ? counted : now.get(charge)
        if (incarnation !== this.#incarnation) continue
        if (decision.outcome === 'allowed') admitted(charge, window)
        else if (decision.outcome === 'refused' && decision.refusedBy === charge.policy) refused(charge)
      }
    }
    if (answer instanceof Promise) void answer.then(finish)
    else finish(answer)
    return !(answer instanceof Promise)
  }

  #start(): Leasing {
    const incarnation = this.#incarnation
    const send: Send = (execute, answered, failed) => {
      if (incarnation === this.#incarnation) this.#send(execute, answered, failed)
    }
    const store: LeaseStore = {
      isAnswering: () => true,
      take: (charge, wanted) => {
        const units = wanted()
        return new Promise((taken, lost) =>
          send(
            () => this.#counters.take(charge, units),
            taken,
            () => lost(new Error('connection lost')),
          ),
        )
      },
      giveBack: (...given) => send(() => this.#counters.giveBack(...given), nothing, nothing),
      flush: nothing,
    }
    const overLimit = new OverLimitCache(1000, this.#time.now, this.#time.now)
    const isOver = (): boolean => incarnation !== this.#incarnation
    return new Leasing({
      store: this.#defect(store),
      // Does what the limiter on Redis does.
      ask: (charges) => {
        for (const charge of charges) this.#asked.add(charge)
        const known = overLimit.findRefusal(charges)
        if (known) return known
        const askedAtMs = this.#time.now()
        return new Promise((decided) =>
          send(
            () => {
              const decision = this.#counters.decide(charges)
              for (const charge of charges) {
                const window = this.#counters.windowOf(charge)
                if (!window || decision.outcome !== 'allowed') continue
                this.#countedIn.set(charge, window)
                window.unanswered += unitsOf(charge)
              }
              return decision
            },
            (decision) => {
              if (decision.outcome === 'refused')
                overLimit.record(charges, decision, askedAtMs, REFUSED_FOR_MS)
              decided(decision)
            },
            () => decided({ outcome: 'unavailable', uncertain: true }),
          ),
        )
      },
      now: this.#time.now,
      later: (task, ms) => this.#wake(() => isOver() || task(), this.#time.now() + ms),
      telemetry: { leaseChanged: nothing },
    })
  }

  /** Runs the task at `atMs`, or when the pause is over. */
  #wake(task: () => void, atMs: number): void {
    this.#time.at(Math.max(atMs, this.#pausedUntilMs), () =>
      this.isPaused ? this.#wake(task, this.#pausedUntilMs) : task(),
    )
  }

  #send<Value>(execute: () => Value, answered: (value: Value) => void, failed: () => void): void {
    const sentMs = this.#time.now()
    if (sentMs !== this.#sentMs) this.#commands += 1
    this.#sentMs = sentMs
    const fault = sentMs < this.#faultUntilMs ? this.#fault : undefined
    if (fault !== undefined) this.#wake(failed, sentMs + TIMEOUT_MS)
    if (fault === 'lost before') return
    if (fault === 'stale') {
      this.#time.at(sentMs + this.#random() * STALE_MS, execute)
      return
    }
    // Commands arrive in the order in which they were sent.
    this.#arrivedMs = Math.max(this.#arrivedMs, sentMs + this.#random() * LATENCY_MS)
    this.#time.at(this.#arrivedMs, () => {
      const value = execute()
      if (fault === undefined)
        this.#wake(() => answered(value), this.#time.now() + this.#random() * LATENCY_MS)
    })
  }
}

type Send = <Value>(execute: () => Value, answered: (value: Value) => void, failed: () => void) => void

function nothing(): void {
  // The model ignores this event.
}

/** The units that a charge costs. */
export function unitsOf({ policy, units }: Charge): number {
  return units ?? reservedUnits(policy)
}
