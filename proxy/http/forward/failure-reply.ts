import { errors, type ErrorReply } from '../../../shared/error-replies.ts'
import type { FailureMetric } from '../../telemetry/telemetry.ts'
import type { FailureKind, UpstreamFailure } from '../upstream/failure.ts'
import { headTooLarge } from '../upstream/http2/fields.ts'
import { speaksHttp2 } from '../upstream/response/head-lines.ts'

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
export function failureReply({ kind, message }: UpstreamFailure): ErrorReply {
  if (message === headTooLarge) return errors.fieldsTooLarge
  return message === speaksHttp2 ? errors.backendSpeaksHttp2 : failureReplies[kind]
}
