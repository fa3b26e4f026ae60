import type { Policy } from '../policy.ts'

/**
 * How the rules ended for one policy and one request: counted and let pass, refused, let pass although exceeded
 * (`shadow`); or, where the store did not answer, counted by this process alone and let pass (`local`), let pass without
 * being counted (`open`), or refused for that (`unavailable`).
 */
export type DecisionOutcome = 'allowed' | 'refused' | 'shadow' | 'local' | 'open' | 'unavailable'

/**
 * Why the backend gave no response: it refused the connection, timed out, closed the connection, or violated the
 * protocol. `busy`: it was not asked, because all connections to it were in use, or this machine could not open more.
 */
export type UpstreamFailure = 'refused' | 'timeout' | 'reset' | 'protocol' | 'busy' | 'other'

/** Why a request was answered 4xx before any rule applied. */
export type Rejection =
  | 'target'
  | 'host'
  | 'framing'
  | 'headers-too-large'
  | 'body-too-large'
  | 'ambiguous-key'
  | 'timeout'
  | 'other'

/** How the token of a request was read: verified, or not, and why. */
export type TokenOutcome = 'verified' | 'invalid' | 'unknown-key' | 'no-keys'

export type KeySetOutcome = 'loaded' | 'failed'

/** A list that decides about a request before the rules do. */
export type ClientListName = 'allow' | 'deny'

/** Why a connection was closed before its first request: limits, a proxy that names no client, a failed handshake. */
export type ConnectionRefusal = 'total' | 'client' | 'proxy-header' | 'tls'

/** A connection that was closed to make room: without a request in flight, or with one. */
export type EvictedConnection = 'idle' | 'busy'

/** Where an unexpected exception was caught: in the handling of a request, or outside of any. */
export type ErrorPlace = 'request' | 'process'

/** How full a bounded table is, and how many entries it has dropped since the start to stay within its bound. */
export type TableUse = { readonly size: number; readonly capacity: number; readonly evictions: number }

/**
 * Everything that the request path reports about itself. Each call adds to a number and returns: it allocates nothing,
 * waits for nothing and never throws, so it may stand anywhere. Nothing a client sends passes through here, so nothing
 * a client sends can become a metric label. Durations are in milliseconds and may be fractions.
 */
export type Telemetry = {
  /**
   * Once for each request whose head could be read, CONNECT apart, whoever answered it. A `status` of 0: the client left
   * before there was a response.
   */
  requestFinished(status: number, durationMs: number): void
  /** Before `requestFinished`, if that follows: the request was rejected for its form, with an error of Sluice's own. */
  requestRejected(reason: Rejection): void
  /** `allowList` kept a rule from a request, or all of them; `denyList` refused it. */
  listed(list: ClientListName): void
  /**
   * Once for each policy of a request that was let pass, for the one that refused it, and for each of a request that was
   * refused because the store is away.
   */
  decided(policy: Policy, outcome: DecisionOutcome): void
  /** A response did not say what its request has cost, where the policy reads that: what was reserved counts. */
  costUnreadable(policy: Policy): void
  /** Once for each token that a rule counts by. */
  tokenRead(outcome: TokenOutcome): void
  /** The key set that tokens are verified with was loaded, or could not be. */
  keySetLoaded(outcome: KeySetOutcome): void
  /** A question to the store was answered, whatever the answer was. */
  storeAnswered(durationMs: number): void
  storeFailed(): void
  breakerChanged(state: 'closed' | 'open'): void
  /** An operator has reset what a client had used up. */
  clientReset(): void
  /** The backend's response head has arrived, `durationMs` after the request was given to the client library. */
  upstreamAnswered(durationMs: number): void
  upstreamFailed(kind: UpstreamFailure): void
  connectionOpened(): void
  connectionClosed(): void
  connectionRefused(reason: ConnectionRefusal): void
  /** A connection was closed to make room for another. */
  connectionEvicted(state: EvictedConnection): void
  /** A connection became a tunnel (WebSocket). It stays counted as a connection too. */
  upgradeOpened(): void
  upgradeClosed(): void
  /** An exception that is a bug, answered with 500 or caught at the edge of the process. */
  errorCaught(place: ErrorPlace): void
  /** Called once for each table at start; `read` is called when metrics are asked for, and must be cheap. */
  observeTable(name: string, read: () => TableUse): void
}
