import { errors, type ErrorReply } from '../../../../shared/error-replies.ts'
import type { RequestSyntaxError, SyntaxFault } from '../../http1/parser/syntax-error.ts'
import type { Rejection } from '../../../telemetry/telemetry.ts'

/** How to answer and count input that is not a request, or that did not arrive in time. */
export type Fault = {
  readonly reply: ErrorReply
  readonly rejection: Rejection
  /** The reason for the log, without any part of the request. */
  readonly reason: string
}

const answers: Record<SyntaxFault, Pick<Fault, 'reply' | 'rejection'>> = {
  syntax: { reply: errors.badRequest, rejection: 'framing' },
  'head-size': { reply: errors.fieldsTooLarge, rejection: 'headers-too-large' },
  'extension-size': { reply: errors.bodyTooLarge, rejection: 'body-too-large' },
}

const late: Fault = {
  reply: errors.requestTimeout,
  rejection: 'timeout',
  reason: 'the request did not arrive in time (HEADERS_TIMEOUT)',
}

/** Returns the fault for an error of the parser, or for `late`: the head did not arrive in time. */
export function faultOf(found: RequestSyntaxError | 'late'): Fault {
  return found === 'late' ? late : { ...answers[found.fault], reason: found.message }
}
