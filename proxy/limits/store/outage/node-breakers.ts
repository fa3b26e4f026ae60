import type { Log } from '../../../../shared/log.ts'
import type { Telemetry } from '../../../telemetry/telemetry.ts'
import { createCircuitBreaker, type CircuitBreaker } from './circuit-breaker.ts'

/** A circuit breaker for each node of Redis that counters are on, named as in `RedisNodes`. */
export type NodeBreakers = {
  readonly isAnyOpen: boolean
  isOpen(node: string): boolean
  openNodes(): readonly string[]
  succeeded(node: string): void
  failed(node: string, reason: string): void
  /**
   * Opens at once. Where it is open already, the reason is logged.
   *
   * @param told not logged again if a reason of this outage contains this text already. Default: the reason
   */
  open(node: string, reason: string, told?: string): void
  /** @param isElsewhere the node has no counters any more: others serve its slots */
  close(node: string, isElsewhere?: boolean): void
  /** Stops their timers. */
  stop(): void
}

/** Consecutive failures until requests do not wait for a node any more; one lost answer is not an outage. */
const FAILURES_TO_OPEN = 3
const RETRY_EVERY_MS = 250

type State = { readonly breaker: CircuitBreaker; openedAtMs: number; reason: string }

/**
 * @param options.recover tries whether the node answers and, when all is well, calls `close`. Must not reject
 * @param options.opened requests are not to wait for this node any more
 */
export function createNodeBreakers(options: {
  readonly recover: (node: string) => Promise<void>
  readonly opened: (node: string) => void
  readonly now: () => number
  readonly log: Log
  readonly telemetry: Pick<Telemetry, 'breakerChanged'>
}): NodeBreakers {
  const { recover, now, log, telemetry } = options
  /** Of nodes that have failed since they last answered. */
  const states = new Map<string, State>()
  const openNodes = new Set<string>()

  function stateOf(node: string): State {
    const known = states.get(node)
    if (known) return known
    const breaker = createCircuitBreaker({
      failuresToOpen: FAILURES_TO_OPEN,
      retryEveryMs: RETRY_EVERY_MS,
      recover: () => recover(node),
      opened(reason) {
        state.openedAtMs = now()
        state.reason = reason
        openNodes.add(node)
        telemetry.breakerChanged('open', node)
        log.warn({ ...named(node), reason }, 'Redis unavailable: circuit breaker open, applying onStoreError')
        options.opened(node)
      },
      closed() {
        openNodes.delete(node)
        telemetry.breakerChanged('closed', node)
      },
    })
    const state = { breaker, openedAtMs: 0, reason: '' }
    states.set(node, state)
    return state
  }

  return {
    get isAnyOpen() {
      return openNodes.size > 0
    },
    isOpen: (node) => openNodes.has(node),
    openNodes: () => [...openNodes],
    succeeded(node) {
      if (states.size > 0 && !openNodes.has(node)) states.delete(node)
    },
    failed(node, reason) {
      stateOf(node).breaker.failed(reason)
    },
    open(node, reason, told = reason) {
      const state = stateOf(node)
      if (!openNodes.has(node)) state.breaker.open(reason)
      else if (!state.reason.includes(told)) {
        state.reason += reason
        log.warn({ ...named(node), reason }, 'Redis is connected but refuses a required command')
      }
    },
    close(node, isElsewhere = false) {
      const state = states.get(node)
      if (!state || !openNodes.has(node)) return
      state.breaker.close()
      states.delete(node)
      const outageMs = Math.round(now() - state.openedAtMs)
      log.info(
        { ...named(node), outageMs },
        isElsewhere ? SERVED_ELSEWHERE : 'Redis available: circuit breaker closed',
      )
    },
    stop() {
      for (const { breaker } of states.values()) breaker.stop()
    },
  }
}

const SERVED_ELSEWHERE = 'Redis available: other nodes serve the slots of one whose circuit breaker was open'

/** The only server needs no name. */
function named(node: string): { readonly node?: string } {
  return node === '' ? {} : { node }
}
