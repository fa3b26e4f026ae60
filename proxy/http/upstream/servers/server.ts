import type { ServerPool } from './server-pool.ts'
import type { FailureKind } from '../failure.ts'

/** Failures in a row after which a server is not used for a while. */
const MAX_FAILURES = 3
const FIRST_EJECTION_MS = 1_000
const MAX_EJECTION_MS = 60_000
/** How long a retired server stays for requests that are already on their way to it, waiting for a decision or for a body. */
const LINGER_MS = 120_000
const LINGER_CHECK_MS = 1_000

/**
 * Failures that point at the server itself, or at the way to it. Silence in the middle of a response is not among them: event streams
 * are silent too, and a client could eject servers with it.
 */
const failures: ReadonlySet<FailureKind> = new Set([
  'refused',
  'connect-timeout',
  'timeout',
  'reset',
  'protocol',
])

/** Whether the request was not sent, because no connection was made for it. */
export function isUnsent(kind: FailureKind): boolean {
  return kind === 'refused' || kind === 'connect-timeout'
}

/** The address of a server. */
export type ServerPlace = {
  readonly url: URL
  /** The IP address to connect to. If undefined, the one that the host in the URL resolves to. */
  readonly address: string | undefined
}

/** `ejected`: its requests failed. `unhealthy`: its probes failed, whatever its requests do. */
export type ServerState = 'available' | 'ejected' | 'unhealthy'

/** Called when a server is taken out of use, or comes back. */
export type OnServerState = (server: Server, reason: string) => void

/**
 * One address of one backend: its connections, made when they are first needed, and whether it is in use.
 *
 * After three failures in a row the server is ejected for a second, then for twice as long after each further failure, up to a minute. When
 * that time is over, one request tries the server. Statuses do not count: a client could eject servers with its requests.
 */
export class Server {
  readonly place: ServerPlace
  readonly #open: () => ServerPool
  readonly #onState: OnServerState
  #pool: ServerPool | undefined
  #failures = 0
  #ejections = 0
  #ejectedUntilMs = 0
  /** Whether a request was sent since the server was ejected. */
  #isTried = false
  #isHealthy = true
  #lingering: NodeJS.Timeout | undefined
  #hasEnded = false

  constructor(place: ServerPlace, open: () => ServerPool, onState: OnServerState = () => undefined) {
    this.place = place
    this.#open = open
    this.#onState = onState
  }

  /** URL and address, which identify the server across lookups. */
  get id(): string {
    const { url, address } = this.place
    return `${url.protocol}//${url.host} ${address ?? ''}`
  }

  get pool(): ServerPool {
    return (this.#pool ??= this.#open())
  }

  /** The pool, if a connection was ever needed. */
  get opened(): ServerPool | undefined {
    return this.#pool
  }

  /** Requests that the server has, or that wait for it. */
  get load(): number {
    return this.#pool?.busy ?? 0
  }

  get state(): ServerState {
    if (!this.#isHealthy) return 'unhealthy'
    return this.#ejections > 0 ? 'ejected' : 'available'
  }

  /** Whether the server may get requests now, judged by the results of earlier ones. */
  isAvailable(nowMs: number): boolean {
    return this.#ejections === 0 || nowMs >= this.#ejectedUntilMs
  }

  get isEjected(): boolean {
    return this.#ejections > 0
  }

  /** Whether its probes pass; true without probes. */
  get isHealthy(): boolean {
    return this.#isHealthy
  }

  /** Call when a request is sent to the server. If it is ejected, this request tries it, and the next one has to wait as long again. */
  begin(nowMs: number): void {
    if (this.#ejections === 0) return
    this.#isTried = true
    this.#ejectFrom(nowMs)
  }

  recordSuccess(): void {
    this.#failures = 0
    if (this.#ejections === 0) return
    this.#endEjection()
    if (this.#isHealthy) this.#onState(this, 'it has answered a request')
  }

  /** @param mayEject whether another server can take the requests */
  recordFailure(kind: FailureKind, nowMs: number, mayEject: boolean): void {
    if (!failures.has(kind)) return
    this.#failures++
    // Failures of requests from before the ejection do not prolong it.
    const isWorse = this.#ejections === 0 ? this.#failures >= MAX_FAILURES && mayEject : this.#isTried
    if (!isWorse) return
    this.#isTried = false
    this.#ejections++
    this.#ejectFrom(nowMs)
    if (this.#ejections === 1 && this.#isHealthy) this.#onState(this, kind)
  }

  /** Call when so many probes have failed that the server must not be used. */
  markUnhealthy(reason: string): void {
    if (!this.#isHealthy) return
    this.#isHealthy = false
    this.#onState(this, reason)
  }

  /** Call when so many probes have passed that the server can be used. Earlier failures do not matter any more. */
  markHealthy(): void {
    if (this.#isHealthy) return
    this.#isHealthy = true
    this.#failures = 0
    this.#endEjection()
    this.#onState(this, 'it passes its health check')
  }

  #endEjection(): void {
    this.#ejections = 0
    this.#isTried = false
  }

  #ejectFrom(nowMs: number): void {
    const durationMs = Math.min(FIRST_EJECTION_MS * 2 ** (this.#ejections - 1), MAX_EJECTION_MS)
    this.#ejectedUntilMs = nowMs + durationMs
  }

  /**
   * Takes no further requests, except those that are already on their way. Ends when the server has had no request for two minutes.
   *
   * @param now monotonic milliseconds
   */
  retire(now: () => number): void {
    let idleSinceMs = now()
    this.#lingering = setInterval(() => {
      if (this.load > 0) idleSinceMs = now()
      else if (now() - idleSinceMs >= LINGER_MS) this.destroy()
    }, LINGER_CHECK_MS)
    this.#lingering.unref()
  }

  /** Whether its connections have been closed. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Ends its connections now. Requests on them fail. */
  destroy(): void {
    this.#hasEnded = true
    clearInterval(this.#lingering)
    this.#pool?.destroy()
  }
}
