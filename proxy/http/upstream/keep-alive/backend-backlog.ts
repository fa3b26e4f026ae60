import { afterInput } from '../../../../shared/after-input.ts'
import { readAndWrite } from '../../message/end-of-turn.ts'
import type { UpstreamConnection } from '../connection.ts'
import { UnansweredConnections, type Unanswered } from './unanswered.ts'

/** How often to check whether idle connections keep the backend from accepting others. */
const CHECK_MS = 10

/**
 * Knows which connections of a pool the backend has accepted, and which may still wait in its backlog. Closes idle ones if they seem to
 * keep the backend from accepting others (`UnansweredConnections`).
 */
export class BackendBacklog {
  /** The pool's idle connections. The pool removes a connection that closes. */
  readonly #idle: readonly UpstreamConnection[]
  /** Monotonic milliseconds. */
  readonly #now: () => number
  readonly #unanswered = new UnansweredConnections()
  /** Connections that the backend has accepted. */
  #accepted = 0
  #check: NodeJS.Timeout | undefined

  constructor(idle: readonly UpstreamConnection[], now: () => number) {
    this.#idle = idle
    this.#now = now
  }

  /** Call when a request begins on a connection that the backend may not have accepted, or that is being opened. */
  add(): Unanswered {
    const unanswered = this.#unanswered.add(this.#now())
    if (this.#idle.length > 0) this.#checkSoon()
    return unanswered
  }

  /** The connection could not be opened. */
  delete(unanswered: Unanswered): void {
    this.#unanswered.delete(unanswered)
  }

  /** The connection has an answer, or has ended, so it no longer waits to be accepted. */
  leave(connection: UpstreamConnection): void {
    if (!connection.unanswered) return
    this.#unanswered.delete(connection.unanswered)
    connection.unanswered = undefined
  }

  /** The backend has accepted the connection. */
  accept(connection: UpstreamConnection): void {
    connection.isAccepted = true
    this.#accepted++
  }

  /** The connection has closed. */
  onClosed(connection: UpstreamConnection): void {
    this.leave(connection)
    if (connection.isAccepted) this.#accepted--
  }

  /** @param sentAtMs when the last byte of the answered request was sent; undefined if it has not been sent */
  onAnswer(connection: UpstreamConnection, sentAtMs: number | undefined): void {
    const nowMs = this.#now()
    const { unanswered } = connection
    if (sentAtMs !== undefined) this.#unanswered.recordResponseTime(nowMs - sentAtMs, unanswered)
    if (!unanswered) return
    connection.unanswered = undefined
    this.accept(connection)
    this.#unanswered.recordAccepted(unanswered, this.#accepted)
    if (this.#idle.length > 0) this.#unanswered.recordFreeConnection(nowMs)
  }

  /** Whether a connection that has become free should be closed, so that the backend accepts another. */
  displaces({ isAccepted }: UpstreamConnection): boolean {
    if (this.#unanswered.size === 0 || !isAccepted) return false
    const nowMs = this.#now()
    this.#unanswered.recordFreeConnection(nowMs)
    if (this.#unanswered.claimClose(nowMs, this.#accepted)) return true
    this.#checkSoon()
    return false
  }

  close(): void {
    clearTimeout(this.#check)
  }

  #checkSoon(): void {
    this.#check ??= setTimeout(() => afterInput(() => this.#closeIdle()), CHECK_MS)
  }

  /** Closes idle connections for unanswered ones. Runs periodically while there are both. */
  #closeIdle(): void {
    // Reads buffered answers first: they show that their connections are accepted.
    readAndWrite()
    this.#check = undefined
    while (this.#unanswered.size > 0) {
      const idle = this.#idle.find(({ isAccepted }) => isAccepted)
      if (!idle) return
      if (!this.#unanswered.claimClose(this.#now(), this.#accepted)) return this.#checkSoon()
      idle.destroy()
    }
  }
}
