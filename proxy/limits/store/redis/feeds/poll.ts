import type { Log } from '../../../../../shared/log.ts'
import { reasonOf } from '../errors.ts'

/** A change is read after half of this on average, and a round trip: well within a second. */
const POLL_MS = 250

/** Reads, four times a second, the changes that other processes have made in Redis. */
export type Poll = {
  /** Reads at once, or waits for the reading in progress. Resolves even if that fails. */
  catchUp(): Promise<void>
  close(): void
}

/**
 * Unlike a subscription, polling misses nothing when a connection is lost, needs no connection of its own and works the
 * same in every topology; see docs/decisions/operators-interface.md.
 *
 * @param options.look reads the changes; never called again before it has ended
 * @param options.isAnswering whether Redis is expected to answer
 * @param options.key the key that is read, for the log
 * @param options.failed the message to log if Redis replies with an error
 */
export function createPoll(options: {
  readonly look: () => Promise<void>
  readonly isAnswering: () => boolean
  readonly key: string
  readonly failed: string
  readonly log: Log
}): Poll {
  const { look, isAnswering, key, failed, log } = options
  let inProgress: Promise<void> | undefined
  let failure = ''

  function catchUp(): Promise<void> {
    inProgress ??= look()
      .then(
        () => void (failure = ''),
        (error: unknown) => logError(error),
      )
      .finally(() => (inProgress = undefined))
    return inProgress
  }

  /** Lost connections are logged elsewhere. An error reply of Redis has to be fixed by an operator. */
  function logError(error: unknown): void {
    if (!(error instanceof Error) || error.name !== 'ReplyError' || reasonOf(error) === failure) return
    failure = reasonOf(error)
    log.error({ reason: failure, key }, failed)
  }

  const timer = setInterval(() => isAnswering() && void catchUp(), POLL_MS).unref()
  return { catchUp, close: () => clearInterval(timer) }
}
