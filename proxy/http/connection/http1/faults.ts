import { errors, type ErrorReply } from '../../../../shared/error-replies.ts'
import type { RequestSyntaxError, SyntaxFault } from '../../http1/parser/syntax-error.ts'
import type { Rejection } from '../../../telemetry/telemetry.ts'

/** The client's input is not a request, or did not arrive in time: the reply to send, and the rejection to count. */
export type Fault = {
  readonly reply: ErrorReply
  readonly rejection: Rejection
  /** The reason for the log, without anything of the request. */
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

/** The reply to faulty input and how to count it, by what the parser found or, if the head did not arrive in time, `late`. */
export function faultOf(found: RequestSyntaxError | 'late'): Fault {
  return found === 'late' ? late : { ...answers[found.fault], reason: found.message }
}
