import { errors } from '../../shared/error-replies.ts'
import { createExceptionLog } from '../../shared/exception-log.ts'
import type { Log } from '../../shared/log.ts'
import type { ClientRequest } from '../http/message/client-request.ts'
import type { ClientResponse } from '../http/message/client-response.ts'
import { sendError } from '../http/fields/reply.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'

/**
 * Called with an exception that a step of a request threw, which is a bug. Answers the request with 500, or closes its
 * connection if the response has begun. No other request is affected. Without a request, it only logs.
 */
export type OnException = (
  error: unknown,
  request?: ClientRequest,
  response?: ClientResponse,
  requestId?: string,
) => void

/** Makes the handler of exceptions, which counts and logs each one. */
export function createErrorBoundary(telemetry: Telemetry, log: Log): OnException {
  const logException = createExceptionLog(log)
  return (error, request, response, requestId) => {
    telemetry.errorCaught('request')
    logException({ err: error, requestId }, 'exception while handling a request')
    if (!request || !response) return
    try {
      if (response.headersSent) abortIncomplete(response)
      else sendError(request, response, errors.internal)
    } catch (again) {
      logException(
        { err: again, requestId },
        'exception while sending an error response; closing the connection',
      )
      response.abort()
    }
  }
}

/** Leaves a complete response alone. */
function abortIncomplete(response: ClientResponse): void {
  if (!response.writableEnded) response.abort()
}
