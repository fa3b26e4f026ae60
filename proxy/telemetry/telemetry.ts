import type { Steps } from '../../shared/steps.ts'
import type { Policy } from '../policy.ts'

/**
 * How the rules ended for one policy and one request: counted and let pass, refused, let pass although exceeded
 * (`shadow`), sent to another route as it was exceeded (`routed`); or, if the store did not answer, counted by this process alone and let
 * pass (`local`), let pass without being counted (`open`), or refused for that (`unavailable`).
 */
export type DecisionOutcome = 'allowed' | 'refused' | 'shadow' | 'routed' | 'local' | 'open' | 'unavailable'

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
  | 'route'
  | 'other'

/**
 * Why a request does not state how much to reserve for it: there is no number (`missing`), it is not JSON by its `Content-Type` (`type`)
 * or by its content (`json`), has a content coding, is too large to be read (`size`) or did not fit into memory (`memory`), has something
 * other than a number from 1 there (`number`), or a name twice (`repeated`).
 */
export type UnreadReserve =
  'missing' | 'type' | 'encoding' | 'size' | 'memory' | 'json' | 'number' | 'repeated'

/**
 * Why the client that a request counts for is not certain from its body: there is no value (`missing`); its `Content-Type` is not one
 * that is read, or does not fit its bytes (`type`), or names another charset than UTF-8 (`charset`); it has a content coding
 * (`encoding`), is longer than 64 KiB (`size`), did not fit into memory (`memory`), is not valid in its format (`syntax`), or has an
 * object or an array in place of the value (`value`).
 */
export type UnreadKey = 'missing' | 'type' | 'charset' | 'encoding' | 'size' | 'memory' | 'syntax' | 'value'

/**
 * Why the cost of a request is not in its response: no header, or no number, is where the policy reads it (`missing`); its body is
 * neither JSON nor server-sent events (`type`), compressed (`encoding`), or truncated JSON (`json`); it is truncated, usually
 * because the client disconnected (`cut`); or it is an error (`status`).
 */
export type UnreadCost = 'missing' | 'type' | 'encoding' | 'json' | 'cut' | 'status'

/**
 * Whether a device has signed in to the account that its request names (`known`); or has a device cookie, but none of this account
 * that is in effect (`unknown`); or has none.
 */
export type DeviceOutcome = 'known' | 'unknown' | 'none'

export type LeaseChange = 'taken' | 'used' | 'returned'

/** How the token of a request was read: verified, or not, and why. */
export type TokenOutcome = 'verified' | 'invalid' | 'unknown-key' | 'no-keys'

export type KeySetOutcome = 'loaded' | 'failed'

export type PollOutcome = 'done' | 'failed'

/** A list that decides about a request before the rules do; `ban`: the clients that are banned. */
export type ClientListName = 'allow' | 'deny' | 'ban'

/** Why a connection was closed before its first request: limits, a proxy that names no client, a failed handshake. */
export type ConnectionRefusal = 'total' | 'client' | 'proxy-header' | 'tls'

/** A connection that was closed to make room: without a request in flight, or with one. */
export type EvictedConnection = 'idle' | 'busy'

/** Where an unexpected exception was caught: in the handling of a request, or outside of any. */
export type ErrorPlace = 'request' | 'process'

/** How full a bounded table is, and how many entries it has dropped since the start to stay within its bound. */
export type TableUse = { readonly size: number; readonly capacity: number; readonly evictions: number }

/** A list of addresses from a file. */
export type ListUse = {
  /** The file, as written in the settings. */
  readonly list: string
  readonly entries: number
  /** Whether it could be used when it was last read. */
  readonly isLastRight: boolean
  /** When the file could last be read and used, in milliseconds of the wall clock. */
  readonly lastRightAtMs: number
}

/** How many servers of a backend are used, and how many are not because of their requests, or of their probes. */
export type ServersUse = {
  readonly upstream: string
  readonly states: Readonly<Record<'available' | 'ejected' | 'unhealthy', number>>
}

/** The reported state of one backend. */
export type UpstreamTelemetry = {
  /** A health check of a server has completed. */
  upstreamProbed(hasPassed: boolean): void
  /** The backend's response head has arrived, `durationMs` after forwarding began, the wait for a connection included. */
  upstreamAnswered(durationMs: number): void
  upstreamFailed(kind: UpstreamFailure): void
}

/**
 * The reports of the request path about itself. Each call adds to a number and returns: it allocates nothing, waits for nothing and never
 * throws, so it may be called anywhere. It takes nothing that a client sends, so that cannot become a metric label. Durations are in
 * milliseconds and may be fractions.
 */
export type Telemetry = UpstreamTelemetry & {
  /** Reports the same, of the backend of a route. The backend of `upstream` is `default`. */
  ofUpstream(name: string): Telemetry
  /**
   * Once for each request whose head could be read, CONNECT apart, whoever answered it. A `status` of 0: the client left
   * before there was a response.
   */
  requestFinished(status: number, durationMs: number): void
  /** The request was rejected for its form, with an error of Sluice's own. Called before `requestFinished`, if that follows. */
  requestRejected(reason: Rejection): void
  /** `allowList` kept a rule from a request, or all of them; `denyList` or a ban refused it. */
  listed(list: ClientListName): void
  /** Which of the lists denied the request: `denyList`, or a file as written in the settings. Called in addition to `listed`. */
  denied(list: string): void
  /**
   * Once for each policy of a request that was let pass, for the one that refused it, and for each of a request that was
   * refused because the store is away.
   */
  decided(policy: Policy, outcome: DecisionOutcome): void
  /** The request has waited for its turn under the policy, and goes on. */
  delayed(policy: Policy, durationMs: number): void
  /** Units of a policy with `lease` were taken ahead, used by requests without asking the store, or given back unused. */
  leaseChanged(policy: Policy, change: LeaseChange, units: number): void
  /** The request was counted, and has used more than 80 % of the client's quota. Called in addition to `decided`. */
  nearLimit(policy: Policy): void
  /** A response did not state the cost of its request, although the policy reads it: the reserved units, or an estimate, count. */
  costUnreadable(policy: Policy, reason: UnreadCost): void
  /** A request did not say how much to reserve, where the policy reads that from its body. */
  reserveUnread(policy: Policy, reason: UnreadReserve): void
  /** Once for each policy with `device` that has decided about a request. */
  deviceRead(policy: Policy, outcome: DeviceOutcome): void
  /** A device has signed in, and has got its cookie. */
  deviceIssued(policy: Policy): void
  /** Once for each policy with plans that applies: the name of the client's plan, `none`, or `unknown` for a plan of another name. */
  planRead(policy: Policy, plan: string): void
  /** A request counts by its client's address, too or only, under a policy that counts by the body. */
  keyUnread(policy: Policy, reason: UnreadKey): void
  /** Once for each token that a rule counts by. */
  tokenRead(outcome: TokenOutcome): void
  /** The key set that tokens are verified with was loaded, or could not be. */
  keySetLoaded(outcome: KeySetOutcome): void
  /** The local API of CrowdSec was asked for decisions. */
  crowdsecPolled(outcome: PollOutcome): void
  /** A question to the store was answered, whatever the answer was. */
  storeAnswered(durationMs: number): void
  storeFailed(): void
  /** @param node of a Redis cluster, `host:port`; empty of the only server, and where no node is known */
  breakerChanged(state: 'closed' | 'open', node: string): void
  /** Redis has evicted so many keys, whosoever they were, since it was started. */
  storeEvicted(keys: number): void
  /** An operator has reset a client's counter. */
  clientReset(): void
  /** The policy's `ban` has banned a client. */
  clientBanned(policy: Policy): void
  connectionOpened(): void
  connectionClosed(): void
  connectionRefused(reason: ConnectionRefusal): void
  /** A connection was closed to make room for another. */
  connectionEvicted(state: EvictedConnection): void
  /** A connection became a tunnel: a WebSocket, or a protocol of `upgradeProtocols`. It stays counted as a connection too. */
  upgradeOpened(): void
  upgradeClosed(): void
  /** An exception that is a bug, answered with 500 or caught at the edge of the process. */
  errorCaught(place: ErrorPlace): void
  /**
   * The tables of limits and routes have changed: new names are counted from 0, and those of removed rules and routes are dropped.
   *
   * @param routes their names
   */
  tableChanged(policies: readonly Policy[], routes: readonly string[]): Steps<void>
  /** Called once for each table at start; `read` is called when metrics are asked for, and must be cheap. */
  observeTable(name: string, read: () => TableUse): void
  /** Does what `observeTable` does, for the lists of addresses. */
  observeLists(read: () => readonly ListUse[]): void
  /** Called once at start; `read` is called when metrics are asked for, and must be cheap. */
  observeServers(read: () => readonly ServersUse[]): void
}
