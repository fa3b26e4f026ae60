import type { FailureKind } from './failure.ts'

/** Timeouts for the backend, in milliseconds. */
export type UpstreamTimeouts = {
  /** Milliseconds from the request's last byte to the head of the response, or to the next interim response. */
  readonly firstByteMs: number
  /** Milliseconds between two pieces of a response, while the client takes them. */
  readonly idleMs: number
}

/**
 * The time until which the backend must send the next part of a response, or read more of a request. The pool checks it
 * periodically, so that no request needs a timer of its own.
 */
export class ResponseDeadline {
  readonly #timeouts: UpstreamTimeouts
  readonly #now: () => number
  #atMs = Number.POSITIVE_INFINITY
  #kind: FailureKind = 'timeout'

  /** @param now monotonic milliseconds */
  constructor(timeouts: UpstreamTimeouts, now: () => number) {
    this.#timeouts = timeouts
    this.#now = now
  }

  /** The kind of failure of an exchange whose deadline has passed. */
  get kind(): FailureKind {
    return this.#kind
  }

  hasPassed(nowMs: number): boolean {
    return nowMs >= this.#atMs
  }

  /** The backend must begin to answer, or read more of the request. Returns the current time, in monotonic milliseconds. */
  awaitAnswer(): number {
    const nowMs = this.#now()
    this.#atMs = nowMs + this.#timeouts.firstByteMs
    this.#kind = 'timeout'
    return nowMs
  }

  /** An interim response has arrived: the backend is working, and gets as much time again (RFC 2518 section 10.1). */
  extendAnswerTimeout(): void {
    if (this.#atMs !== Number.POSITIVE_INFINITY && this.#kind === 'timeout') this.awaitAnswer()
  }

  /** Starts waiting for more of the response. */
  awaitMore(): void {
    this.awaitWithin(this.#timeouts.idleMs, 'idle-timeout')
  }

  awaitWithin(durationMs: number, kind: FailureKind): void {
    this.#atMs = this.#now() + durationMs
    this.#kind = kind
  }

  /** Ends the deadline of an exchange: the idle connection is kept open until `atMs`, in monotonic milliseconds. */
  keepUntil(atMs: number): void {
    this.#atMs = atMs
  }

  /** Expects nothing of the backend. */
  clear(): void {
    this.#atMs = Number.POSITIVE_INFINITY
  }
}
