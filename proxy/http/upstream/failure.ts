import { isIPv6 } from 'node:net'
import { errorText } from '../../../shared/error-text.ts'

/**
 * Why a request got no response, or no complete one, from the backend:
 * - `refused`: no connection could be made
 * - `local-limit`: a limit of this machine, such as that of open files, prevented a connection
 * - `connect-timeout`, `timeout`, `idle-timeout`: no connection, no first byte or no further byte arrived in time
 * - `reset`: the connection ended before the response was complete
 * - `protocol`: the response violates HTTP
 * - `busy`: every connection is in use and the queue is full
 * - `aborted`: the gateway aborted it, because the client disconnected, its body was truncated, or the gateway stops
 * - `exception`: an error in the gateway's own code
 */
export type FailureKind =
  | 'refused'
  | 'local-limit'
  | 'connect-timeout'
  | 'timeout'
  | 'idle-timeout'
  | 'reset'
  | 'protocol'
  | 'busy'
  | 'aborted'
  | 'exception'

/** Facts about a failure by which the request may be sent again, and the server be ejected. */
export type FailureFacts = {
  /** The connection had served a request before, and not one byte of a response to this one arrived. */
  readonly onReusedConnection?: boolean
  /** The backend has not begun with the request, whatever its method: the backend reported so, or the request was not sent. */
  readonly isUnprocessed?: boolean
  /** The request may be the cause, so that the failure must not eject the server: a client could eject one after another. */
  readonly isOfRequest?: boolean
  /** The exception, for the log. */
  readonly cause?: unknown
}

/** The reason why a request got no response, or no complete one, from the backend. */
export class UpstreamFailure extends Error implements FailureFacts {
  override readonly name = 'UpstreamFailure'
  readonly kind: FailureKind
  readonly onReusedConnection: boolean
  readonly isUnprocessed: boolean
  readonly isOfRequest: boolean

  constructor(
    kind: FailureKind,
    message: string,
    { onReusedConnection = false, isUnprocessed = false, isOfRequest = false, cause }: FailureFacts = {},
  ) {
    super(message, { cause })
    this.kind = kind
    this.onReusedConnection = onReusedConnection
    this.isUnprocessed = isUnprocessed
    this.isOfRequest = isOfRequest
  }
}

const localLimits: Readonly<Record<string, string>> = {
  EMFILE:
    'too many open files in this process (EMFILE): raise the limit (ulimit -n, LimitNOFILE, --ulimit nofile)',
  ENFILE: 'too many open files on this machine (ENFILE): raise fs.file-max',
  EADDRNOTAVAIL: 'no free local port (EADDRNOTAVAIL): widen net.ipv4.ip_local_port_range',
}

/** The alert of servers that only speak HTTP/2, on connections for upgrades. */
const NO_PROTOCOL = 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL'

const noProtocol =
  'the backend speaks none of the protocols offered to it by ALPN: WebSocket and other upgrades need HTTP/1.1'

/** The codes of OpenSSL for a certificate that no trusted CA has signed. Node's text for them recommends options of the command line. */
const unknownAuthority: ReadonlySet<string | undefined> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
])

/** An error of `net.connect`. `address`: the IP address that was tried, if one was. */
type ConnectError = NodeJS.ErrnoException & { readonly address?: string }

/** The limit of this machine that prevented a connection. For an IPv6 address, EADDRNOTAVAIL may mean that this machine has no IPv6. */
function localLimitOf({ code = '', address = '' }: ConnectError): string | undefined {
  return code === 'EADDRNOTAVAIL' && isIPv6(address) ? undefined : localLimits[code]
}

/** The failure to open a connection: whether a limit of this machine caused it, the request, or the backend. */
export function failureOfConnect(error: ConnectError): UpstreamFailure {
  // If Node has tried several addresses, its error has those of all attempts.
  const attempts: readonly ConnectError[] = error instanceof AggregateError ? error.errors : [error]
  const limit = attempts.map(localLimitOf).find((each) => each !== undefined)
  if (limit !== undefined) return new UpstreamFailure('local-limit', limit)
  // Another server may speak HTTP/1.1.
  if (error.code === NO_PROTOCOL) return new UpstreamFailure('refused', noProtocol, { isOfRequest: true })
  if (unknownAuthority.has(error.code)) {
    const remedy = 'name its CA in UPSTREAM_CA_FILE, and have the backend send its intermediate certificates'
    const text = `the certificate of the backend is not of a trusted CA (${error.code}): ${remedy}`
    return new UpstreamFailure('refused', text)
  }
  return new UpstreamFailure('refused', errorText(error))
}

/** The failure of requests whose connections are closed because the gateway stops. */
export function stopped(): UpstreamFailure {
  return new UpstreamFailure('aborted', stoppedReason)
}

/** The reason of requests that are aborted because the gateway stops; for the log. */
export const stoppedReason = 'the gateway is stopping and SHUTDOWN_GRACE has expired'

/** The failure of a request that got no connection within its time in the queue, or no place in the queue. */
export function allBusy(): UpstreamFailure {
  return new UpstreamFailure('busy', 'no connection to the backend became free in time, or the queue is full')
}
