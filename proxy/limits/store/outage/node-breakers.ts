import type { Log } from '../../../../shared/log.ts'
import type { Telemetry } from '../../../telemetry/telemetry.ts'
import { NodeLog } from '../redis/node-log.ts'
import { createCircuitBreaker, type CircuitBreaker } from './circuit-breaker.ts'

/** Consecutive failures after which requests no longer wait for a node; one lost answer is not an outage. */
const FAILURES_TO_OPEN = 3
const RETRY_EVERY_MS = 250

const OPEN = 'Redis unavailable: circuit breaker open, applying onStoreError'
const CLOSED = 'Redis available: circuit breaker closed'
const SERVED_ELSEWHERE =
  'Redis available: other nodes have taken over the slots of a node whose circuit breaker was open'
const REFUSES = 'Redis is connected but refuses a required command'

/** The state of a node that has failed since it last answered. */
type State = { readonly breaker: CircuitBreaker; openedAtMs: number; reason: string }

export type NodeBreakerOptions = {
  /** Checks whether the node answers and, if all is well, calls `close`. Must not reject. */
  readonly recover: (node: string) => Promise<void>
  /** Called when requests must no longer wait for this node. */
  readonly opened: (node: string) => void
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  readonly log: Log
  readonly telemetry: Pick<Telemetry, 'breakerChanged'>
}

/** A circuit breaker for each Redis node that holds counters, named as in `RedisNodes`. */
export class NodeBreakers {
  readonly #options: NodeBreakerOptions
  readonly #states = new Map<string, State>()
  readonly #open = new Set<string>()
  readonly #nodeLog: NodeLog

  constructor(options: NodeBreakerOptions) {
    this.#options = options
    this.#nodeLog = new NodeLog(options.log)
  }

  get isAnyOpen(): boolean {
    return this.#open.size > 0
  }

  isOpen(node: string): boolean {
    return this.#open.has(node)
  }

  openNodes(): readonly string[] {
    return [...this.#open]
  }

  succeeded(node: string): void {
    if (this.#states.size > 0 && !this.#open.has(node)) this.#states.delete(node)
  }

  failed(node: string, reason: string): void {
    this.#stateOf(node).breaker.failed(reason)
  }

  /**
   * Opens at once. If the circuit breaker is open already, a new reason is logged.
   *
   * @param known the reason is not logged again if an earlier one of this outage contains this text. Default: the reason
   */
  open(node: string, reason: string, known = reason): void {
    const state = this.#stateOf(node)
    if (!this.#open.has(node)) state.breaker.open(reason)
    else if (!state.reason.includes(known)) {
      state.reason += reason
      this.#nodeLog.flush()
      this.#options.log.warn({ ...named(node), reason }, REFUSES)
    }
  }

  /** @param isElsewhere whether the node no longer has counters because other nodes serve its slots */
  close(node: string, isElsewhere = false): void {
    const state = this.#states.get(node)
    if (!state || !this.#open.has(node)) return
    state.breaker.close()
    this.#states.delete(node)
    const outageMs = Math.round(this.#options.now() - state.openedAtMs)
    this.#nodeLog.write('info', isElsewhere ? SERVED_ELSEWHERE : CLOSED, { node, fields: { outageMs } })
  }

  /** Stops the timers of all circuit breakers. */
  stop(): void {
    for (const { breaker } of this.#states.values()) breaker.stop()
    this.#nodeLog.flush()
  }

  #stateOf(node: string): State {
    const known = this.#states.get(node)
    if (known) return known
    const state: State = { breaker: this.#createBreaker(node), openedAtMs: 0, reason: '' }
    this.#states.set(node, state)
    return state
  }

  #createBreaker(node: string): CircuitBreaker {
    return createCircuitBreaker({
      failuresToOpen: FAILURES_TO_OPEN,
      retryEveryMs: RETRY_EVERY_MS,
      recover: () => this.#options.recover(node),
      opened: (reason) => this.#opened(node, reason),
      closed: () => this.#closed(node),
    })
  }

  #opened(node: string, reason: string): void {
    const { now, telemetry, opened } = this.#options
    const state = this.#stateOf(node)
    state.openedAtMs = now()
    state.reason = reason
    this.#open.add(node)
    telemetry.breakerChanged('open', node)
    this.#nodeLog.write('warn', OPEN, { node, fields: { reason } })
    opened(node)
  }

  #closed(node: string): void {
    this.#open.delete(node)
    this.#options.telemetry.breakerChanged('closed', node)
  }
}

/** The only server needs no name. */
function named(node: string): { readonly node?: string } {
  return node === '' ? {} : { node }
}
