import type { UpstreamExchange } from '../exchange.ts'

/** A destination for requests: the connections to a server, or to one of several. */
export type UpstreamSender = {
  /** Sends a request. Failures are reported to `exchange.onFailure`. */
  send(exchange: UpstreamExchange): void
  /** Sends a request again, on a new connection. Call within its `onFailure`. */
  retry(exchange: UpstreamExchange): void
}

/** The connections to one server. */
export type ServerPool = UpstreamSender & {
  /** The number of connections. */
  readonly size: number
  /** The number of connections that have a long response, or that, over HTTP/2, only finish responses. `maxConnections` leaves them out. */
  readonly streams: number
  /** Requests that have a connection, are getting one, or wait. */
  readonly busy: number
  readonly queued: number
  readonly queuedUploads: number
  /** Closes all connections now. Requests on them and in the queues fail. */
  destroy(): void
}
