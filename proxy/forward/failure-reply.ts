import { errors, type ErrorReply } from '../../shared/error-replies.ts'
import type { ClientRequest } from '../http/messages.ts'
import type { UpstreamFailure as FailureMetric } from '../telemetry/telemetry.ts'
import type { FailureKind, UpstreamFailure } from '../upstream/failure.ts'
import { speaksHttp2 } from '../upstream/head-lines.ts'

const failureReplies: Readonly<Record<FailureKind, ErrorReply>> = {
  refused: errors.badGateway,
  reset: errors.badGateway,
  protocol: errors.badGateway,
  aborted: errors.badGateway,
  'connect-timeout': errors.gatewayTimeout,
  timeout: errors.gatewayTimeout,
  'idle-timeout': errors.gatewayTimeout,
  busy: errors.backendBusy,
  'local-limit': errors.gatewayBusy,
  exception: errors.internal,
}

/** Requests aborted by the gateway are not upstream failures. */
export const failureMetrics: Readonly<Record<Exclude<FailureKind, 'aborted'>, FailureMetric>> = {
  refused: 'refused',
  reset: 'reset',
  protocol: 'protocol',
  'connect-timeout': 'timeout',
  timeout: 'timeout',
  'idle-timeout': 'timeout',
  busy: 'busy',
  'local-limit': 'busy',
  exception: 'other',
}

/** The reply to a request that failed at the backend before any of its response was sent to the client. */
export function failureReply({ kind, message }: UpstreamFailure, request: ClientRequest): ErrorReply {
  const reply = failureReplies[kind]
  if (reply !== errors.badGateway || kind === 'refused') return reply
  if (isGrpc(request)) return errors.grpcUnsupported
  return message === speaksHttp2 ? errors.http2Unsupported : reply
}

/** `application/grpc`, `application/grpc+proto`…, but not gRPC-Web, which HTTP/1.1 can carry. */
function isGrpc({ headers }: ClientRequest): boolean {
  return /^application\/grpc(?![\w-])/i.test(headers['content-type'] ?? '')
}
