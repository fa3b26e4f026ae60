export type CircuitBreaker = {
  /** While true, callers must not ask the store. */
  readonly isOpen: boolean
  succeeded(): void
  failed(reason: string): void
  /** Opens at once, regardless of the number of failures. */
  open(reason: string): void
  /** Closes the circuit breaker. Call it only after a complete recovery. */
  close(): void
  /** Stops its timer. */
  stop(): void
}

/**
 * A circuit breaker: opens after consecutive failures, so that requests do not wait for a store that does not answer.
 * While open, it calls `recover` at regular intervals, never twice at once, until `recover` calls `close`.
 *
 * @param options.failuresToOpen consecutive failures until it opens; one lost answer is not an outage
 * @param options.recover checks whether the store answers and, if all is well, calls `close`. Must not reject
 */
export function createCircuitBreaker(options: {
  readonly failuresToOpen: number
  readonly retryEveryMs: number
  readonly recover: () => Promise<void>
  readonly opened: (reason: string) => void
  readonly closed: () => void
}): CircuitBreaker {
  let isOpen = false
  let failuresInARow = 0
  /** The reason of the first of the consecutive failures: later ones may be consequences. */
  let firstReason = ''
  let timer: NodeJS.Timeout | undefined
  let isRecovering = false

  function tryToRecover(): void {
    if (isRecovering) return
    isRecovering = true
    void options.recover().finally(() => {
      isRecovering = false
    })
  }

  function open(reason: string): void {
    if (isOpen) return
    isOpen = true
    timer = setInterval(tryToRecover, options.retryEveryMs).unref()
    options.opened(reason)
  }

  return {
    get isOpen() {
      return isOpen
    },
    succeeded() {
      failuresInARow = 0
    },
    failed(reason) {
      if (failuresInARow === 0) firstReason = reason
      failuresInARow += 1
      if (failuresInARow >= options.failuresToOpen) open(firstReason)
    },
    open,
    close() {
      if (!isOpen) return
      isOpen = false
      failuresInARow = 0
      clearInterval(timer)
      options.closed()
    },
    stop: () => clearInterval(timer),
  }
}
