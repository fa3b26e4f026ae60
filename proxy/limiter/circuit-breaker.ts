export type CircuitBreaker = {
  /** While true the store is given up on: it is not to be asked. */
  readonly isOpen: boolean
  succeeded(): void
  failed(reason: string): void
  /** Opens at once, whatever came before. */
  open(reason: string): void
  /** Closes it. Only the one who has recovered what an outage left behind may call it. */
  close(): void
  /** Ends its timer. */
  stop(): void
}

/**
 * Keeps requests from waiting for a store that does not answer: opens after a few failures in a row and then asks
 * `recover` at regular intervals, never twice at once, until that closes it.
 *
 * @param options.failuresToOpen a single lost answer is no outage
 * @param options.recover tries whether the store answers and, when all is well, calls `close`. Must not reject
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
  /** Of the first failure in the row: those after it may be consequences. */
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
