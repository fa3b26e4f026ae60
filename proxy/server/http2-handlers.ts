import { createExceptionLog } from '../../shared/exception-log.ts'
import type { Log } from '../../shared/log.ts'
import { errors, type ErrorReply } from '../../shared/error-replies.ts'
import type { PacedExchange } from '../http/connection/client-progress.ts'
import type { Fault } from '../http/connection/http1/faults.ts'
import type { Http2Handlers } from '../http/connection/http2/connections.ts'
import type { SlowClients } from '../http/connection/slow-clients.ts'
import { sendError } from '../http/fields/reply.ts'
import type { ClientRequest } from '../http/message/client-request.ts'
import type { ClientResponse } from '../http/message/client-response.ts'
import { peerOf, type Peer, type PeerOptions } from '../request/addresses/client-address.ts'
import { allow } from '../request/local-replies.ts'
import type { OnException } from './error-boundary.ts'
import type { Handler } from './handler-options.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'

type Http2Deps = {
  readonly handler: Handler
  readonly telemetry: Telemetry
  readonly onException: OnException
  readonly peers: PeerOptions
  readonly slowClients: Pick<SlowClients, 'add' | 'finish' | 'isPressed'>
  /** Called if a head cannot be parsed, to log it with the peer, as for HTTP/1. */
  readonly onFault: (found: Fault, peerAddress: string | undefined) => void
  readonly log: Log
}

const headersTooLarge: Fault = {
  reply: errors.fieldsTooLarge,
  rejection: 'headers-too-large',
  reason: 'the head or the trailers are too large (MAX_HEADER_SIZE)',
}

/** Passes HTTP/2 requests to the handler. */
export function createHttp2Handlers(deps: Http2Deps): Http2Handlers {
  const { handler, telemetry, onException, log } = deps
  const logException = createExceptionLog(log)
  const answer = (
    request: ClientRequest,
    response: ClientResponse,
    error: ErrorReply,
    fields?: readonly string[],
  ): void => {
    const peer = peerOf(request, deps.peers)
    if (!peer) return void request.socket.destroy()
    watchAnswer(deps.slowClients, peer, request, response)
    sendError(request, response, error, fields)
  }
  return {
    isPressed: () => deps.slowClients.isPressed,
    isProxy: (socket) => peerOf({ socket }, deps.peers)?.trusted ?? false,
    clientOf(request) {
      const peer = peerOf(request, deps.peers)
      if (!peer?.trusted) return ''
      const { addresses } = deps.peers
      return addresses.readClientAddress(peer, request.headers[addresses.header]).prefix
    },
    serve(request, response) {
      try {
        if (request.method === 'CONNECT') {
          telemetry.requestRejected('other')
          answer(request, response, errors.methodNotAllowed, allow)
        } else handler(request, response)
      } catch (error) {
        onException(error, request, response)
      }
    },
    onHeadersTooLarge(request, response) {
      telemetry.requestRejected(headersTooLarge.rejection)
      deps.onFault(headersTooLarge, request.socket.remoteAddress)
      answer(request, response, headersTooLarge.reply)
    },
    onMalformed() {
      telemetry.requestRejected('framing')
      log.debug({ reason: 'malformed HTTP/2 request' }, 'request rejected')
    },
    onException(error) {
      telemetry.errorCaught('request')
      logException({ err: error }, 'unhandled exception on HTTP/2 connection; closing')
    },
  }
}

/** Watches a response that does not come from the handler, because a client may also be too slow to read it. */
function watchAnswer(
  slowClients: Http2Deps['slowClients'],
  { client, trusted }: Peer,
  request: ClientRequest,
  response: ClientResponse,
): void {
  const exchange: { -readonly [Key in keyof PacedExchange]: PacedExchange[Key] } = {
    request,
    response,
    forwarding: undefined,
    isFinished: false,
    client: client.prefix,
    isOnSharedConnection: trusted,
    place: -1,
    guard: (step) => step(),
    onTooSlow: () => response.abort(),
  }
  slowClients.add(exchange)
  response.onClose = () => {
    exchange.isFinished = true
    slowClients.finish(exchange)
  }
}
