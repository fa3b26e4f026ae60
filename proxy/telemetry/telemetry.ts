import type { Steps } from '../../shared/steps.ts'
import type { Policy } from '../policy.ts'

/**
 * The outcome of one policy for one request: counted and allowed (`allowed`), refused (`refused`), over the limit but allowed (`shadow`),
 * or over the limit and sent to another route (`routed`). If the store did not answer: counted by this process alone and allowed (`local`),
 * allowed without being counted (`open`), or refused (`unavailable`).
 */
export type DecisionOutcome = 'allowed' | 'refused' | 'shadow' | 'routed' | 'local' | 'open' | 'unavailable'

/**
 * Why there is no response from the backend: it refused the connection, timed out, closed the connection, or violated the protocol. `busy`:
 * the request was not sent, because all connections were in use, or this machine could not open more.
 */
export type FailureMetric = 'refused' | 'timeout' | 'reset' | 'protocol' | 'busy' | 'other'

/** Why a request was answered with 4xx before any rule applied. */
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
 * Why a request does not state how much to reserve. It has no number (`missing`); its body is not JSON by its `Content-Type` (`type`) or by
 * its content (`json`), has a content coding (`encoding`), is too large to be read (`size`), or did not fit into memory (`memory`); the
 * value is not a number from 1 (`number`); or a name occurs twice (`repeated`).
 */
export type UnreadReserve =
  | 'missing'
  | 'type'
  | 'encoding'
  | 'size'
  | 'memory'
  | 'json'
  | 'number'
  | 'repeated'

/**
 * Why the body of a request does not identify its client for certain. It has no value (`missing`); its `Content-Type` is unsupported or
 * does not match its bytes (`type`), or names a charset other than UTF-8 (`charset`); it has a content coding (`encoding`), is longer than
 * 64 KiB (`size`), did not fit into memory (`memory`), is not valid in its format (`syntax`), or has an object or an array in place of the
 * value (`value`).
 */
export type UnreadKey = 'missing' | 'type' | 'charset' | 'encoding' | 'size' | 'memory' | 'syntax' | 'value'

/**
 * Why a response does not state the cost of its request. It has no header or number where the policy reads the cost (`missing`); its body
 * is neither JSON nor server-sent events (`type`), compressed (`encoding`), or truncated JSON (`json`); the response is truncated, usually
 * because the client disconnected (`cut`); or it is an error (`status`).
 */
export type UnreadCost = 'missing' | 'type' | 'encoding' | 'json' | 'cut' | 'status'

/**
 * Whether the device of a request has signed in to the account that the request names (`known`), has a device cookie, but no valid one for
 * this account (`unknown`), or has no device cookie (`none`).
 */
export type DeviceOutcome = 'known' | 'unknown' | 'none'

export type LeaseChange = 'taken' | 'used' | 'returned'

/** Whether the token of a request was verified or, if not, why. */
export type TokenOutcome = 'verified' | 'invalid' | 'unknown-key' | 'no-keys'

export type KeySetOutcome = 'loaded' | 'failed'

export type PollOutcome = 'done' | 'failed'

/** A list that decides about a request before the rules do. `ban`: the banned clients. */
export type ClientListName = 'allow' | 'deny' | 'ban'

/**
 * Why a connection was closed before its first request: a limit (`total`, `client`), no valid PROXY header (`proxy-header`), or a failed
 * handshake (`tls`).
 */
export type ConnectionRefusal = 'total' | 'client' | 'proxy-header' | 'tls'

/** The state of a connection that was closed to make room: without (`idle`) or with (`busy`) a request in flight. */
export type EvictedConnection = 'idle' | 'busy'

/** Where an unexpected exception was caught: while handling a request, or elsewhere. */
export type ErrorPlace = 'request' | 'process'

/** How full a bounded table is, and how many entries it has dropped since the start to stay within its bound. */
export type TableUse = { readonly size: number; readonly capacity: number; readonly evictions: number }

/** A list of addresses from a file. */
export type ListUse = {
  /** The file, as written in the settings. */
  readonly list: string
  readonly entries: number
  /** Whether the list could be used when it was last read. */
  readonly lastReadSucceeded: boolean
  /** The time when the file was last read and could be used, in milliseconds of the wall clock. */
  readonly lastSuccessAtMs: number
}

/** A database of countries or autonomous systems, from a file. */
export type GeoUse = {
  readonly database: 'country' | 'asn'
  /** Whether the file could be used when it was last read. */
  readonly lastReadSucceeded: boolean
}

/**
 * The number of servers of a backend in each state: in use, or out of use because of failed requests (`ejected`) or failed probes
 * (`unhealthy`).
 */
export type ServersUse = {
  readonly upstream: string
  readonly states: Readonly<Record<'available' | 'ejected' | 'unhealthy', number>>
}

/** Reports about one backend. */
export type UpstreamTelemetry = {
  /** A health check of a server has completed. */
  upstreamProbed(hasPassed: boolean): void
  /** The response head of the backend has arrived, `durationMs` after forwarding began, including the wait for a connection. */
  upstreamAnswered(durationMs: number): void
  upstreamFailed(kind: FailureMetric): void
}

/**
 * Reports from the request path. Each call adds to a number and returns. It allocates nothing, waits for nothing and never throws, so it
 * can be called anywhere. No argument is text from a client, so such text cannot become a metric label. Durations are in milliseconds and
 * may have fractions.
 */
export type Telemetry = UpstreamTelemetry & {
  /** Returns the same reports for the backend of a route. The backend of `upstream` is `default`. */
  ofUpstream(name: string): Telemetry
  /**
   * Called once for each request whose head could be read, except CONNECT, whether or not the gateway answered it itself. A `status` of 0
   * means that the client disconnected before there was a response.
   */
  requestFinished(status: number, durationMs: number): void
  /**
   * The request was rejected as malformed or oversized, with an error of Sluice's own. Called before `requestFinished`, if that follows.
   */
  requestRejected(reason: Rejection): void
  /** An `allowList` exempted a request from one or all rules, or `denyList` or a ban refused it. */
  listed(list: ClientListName): void
  /** Reports the list that denied the request: `denyList`, a file as written in the settings, or `crowdsec`. Called besides `listed`. */
  denied(list: string): void
  /**
   * Called for each policy of an allowed request, for the policy that refused a request, and for each policy of a request that was refused
   * because the store is unavailable.
   */
  decided(policy: Policy, outcome: DecisionOutcome): void
  /** The request has waited for its turn under the policy, and continues. */
  delayed(policy: Policy, durationMs: number): void
  /** Units of a policy with `lease` were taken in advance, used by requests without asking the store, or returned unused. */
  leaseChanged(policy: Policy, change: LeaseChange, units: number): void
  /** The request was counted, and has used more than 80 % of the client's quota. Called in addition to `decided`. */
  nearLimit(policy: Policy): void
  /** A response did not state the cost of its request, although the policy reads it: the reserved units, or an estimate, count. */
  costUnread(policy: Policy, reason: UnreadCost): void
  /** A request did not state how much to reserve, although the policy reads it from the body. */
  reserveUnread(policy: Policy, reason: UnreadReserve): void
  /** Called once for each policy with `device` that has decided about a request. */
  deviceRead(policy: Policy, outcome: DeviceOutcome): void
  /** A device has signed in and received its cookie. */
  deviceIssued(policy: Policy): void
  /**
   * Called once for each policy with plans that applies, with the name of the client's plan, `none`, or `unknown` for a plan of another
   * name.
   */
  planRead(policy: Policy, plan: string): void
  /** A request counts by its client's address, instead of or in addition to its body, under a policy that counts by the body. */
  keyUnread(policy: Policy, reason: UnreadKey): void
  /** Called once for each token that a rule counts by. */
  tokenRead(outcome: TokenOutcome): void
  /** The key set that verifies tokens was loaded, or could not be loaded. */
  keySetLoaded(outcome: KeySetOutcome): void
  /** The local API of CrowdSec was polled for decisions. */
  crowdsecPolled(outcome: PollOutcome): void
  /** The store answered a command, whatever the answer was. */
  storeAnswered(durationMs: number): void
  storeFailed(): void
  /** @param node `host:port` of a node of a Redis cluster; empty for a single server, and if no node is known */
  breakerChanged(state: 'closed' | 'open', node: string): void
  /** Redis has evicted this number of keys since it was started, including keys of other programs. */
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
  /** The certificate that new connections get from now on. @param expiresAtMs its `notAfter`, in milliseconds of the wall clock */
  certificateUsed(expiresAtMs: number): void
  /** A connection became a tunnel: a WebSocket, or a protocol of `upgradeProtocols`. It still counts as a connection, too. */
  upgradeOpened(): void
  upgradeClosed(): void
  /** An exception that is a bug, answered with 500 or caught at the edge of the process. */
  errorCaught(place: ErrorPlace): void
  /**
   * The tables of limits and routes have changed. New names are counted from 0, and names of removed rules and routes are dropped.
   *
   * @param routes the names of the routes
   */
  tableChanged(policies: readonly Policy[], routes: readonly string[]): Steps<void>
  /** Called once for each table at the start. `read` is called when metrics are requested, and must be cheap. */
  observeTable(name: string, read: () => TableUse): void
  /** Does what `observeTable` does, for the lists of addresses. */
  observeLists(read: () => readonly ListUse[]): void
  /** Does what `observeTable` does, for the databases of `geoip`. */
  observeGeo(read: () => readonly GeoUse[]): void
  /** Called once at the start. `read` is called when metrics are requested, and must be cheap. */
  observeServers(read: () => readonly ServersUse[]): void
}
