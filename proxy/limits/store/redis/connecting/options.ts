import type { RedisAddress } from './url.ts'

/** The logins at Redis and at its sentinels, and the certificates for connections to both. */
export type RedisCredentials = {
  readonly username?: string | undefined
  readonly password?: string | undefined
  /** PEM of the authorities to trust instead of the usual ones. */
  readonly ca?: Buffer | undefined
  /** PEM of the client certificate for Redis and Sentinel, and its key. */
  readonly cert?: Buffer | undefined
  readonly key?: Buffer | undefined
  /** The login at the sentinels. */
  readonly sentinelUsername?: string | undefined
  readonly sentinelPassword?: string | undefined
}

/** Returns the current credentials. Called before each connection, so that renewed credentials are used. */
export type ReadCredentials = () => RedisCredentials

/** Milliseconds before the next attempt to connect, 400 at most. Attempts never end. */
export function retryDelayMs(attempt: number): number {
  return Math.min(50 * 2 ** Math.min(attempt - 1, 10), 400)
}

/** Returns the credentials as options of a connection to a server. Undefined options replace earlier ones. */
export function loginOptions({ tls }: RedisAddress, credentials: RedisCredentials) {
  const { username, password } = credentials
  return { username, password, ...(tls ? { tls: tlsOptions(credentials) } : {}) }
}

/** Returns the credentials for a sentinel, as options of the client that asks it. */
export function sentinelLoginOptions({ tls }: RedisAddress, credentials: RedisCredentials) {
  const { sentinelUsername, sentinelPassword } = credentials
  return { sentinelUsername, sentinelPassword, ...(tls ? { sentinelTLS: tlsOptions(credentials) } : {}) }
}

/** TLS options. Node verifies certificate and name by default. */
export function tlsOptions({ ca, cert, key }: RedisCredentials) {
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) }
}

/** Options of every connection to a server, in addition to `loginOptions`. docs/redis.md explains each for operators. */
export function commonOptions() {
  return {
    // A command that was sent may have been executed. Sent again after a reconnect, it would count twice.
    autoResendUnfulfilledCommands: false,
    // Commands in flight when a connection is lost fail at once, instead of after 20 attempts to reconnect.
    maxRetriesPerRequest: 0,
    // A connection whose answers are overdue for this long is dead, even if TCP keeps it open. This also bounds the commands pending
    // on a server that hangs: only probes are sent there, and no probe is older than this.
    socketTimeout: 2000,
    // How long the server has to close the connection after we have. A server that hangs does not, and the next connection waits.
    disconnectTimeout: 250,
    // Together with the delay of the next attempt, this is how long a new master may stay unnoticed behind an old one
    // that swallows packets.
    connectTimeout: 1000,
    // Detects a server that disappeared without closing the connection while nothing is sent.
    keepAlive: 10_000,
    // How long to wait before asking again whether a server has loaded its data.
    maxLoadingRetryTime: 500,
    // No feature of RESP3 is used here, and older servers and proxies in between know only RESP2.
    protocol: 2 as const,
    // Shown by CLIENT LIST. The library's own introduction costs two commands that older servers reject.
    connectionName: 'sluice',
    disableClientInfo: true,
  }
}
