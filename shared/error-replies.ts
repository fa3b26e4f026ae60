import { STATUS_CODES } from 'node:http'

/**
 * Every error that Sluice or the origin answers itself, one line each: status and text.
 * The body is always `{"code": <status>, "error": <text>}` as `application/json`.
 */
export type ErrorReply = {
  readonly status: number
  /** The status's reason phrase, for where a response is written by hand. */
  readonly reason: string
  readonly text: string
  /** The body as sent, made once. */
  readonly body: Buffer
}

function errorReply(status: number, text: string): ErrorReply {
  const body = Buffer.from(JSON.stringify({ code: status, error: text }))
  return { status, reason: STATUS_CODES[status] ?? '', text, body }
}

export const errors = {
  badRequest: errorReply(400, 'Bad request'),
  jsonUnreadable: errorReply(400, 'The body is not JSON'),
  questionUnreadable: errorReply(400, 'The body must be an object with client and, if need be, policy'),
  clientUnreadable: errorReply(400, 'The client must be an object such as {"ip": "192.0.2.7"}'),
  clientAddressUnreadable: errorReply(400, 'The ip of the client is not an IP address'),
  clientPartsDiffer: errorReply(400, 'The client must have the parts that the rule counts by, its key'),
  listLimitUnreadable: errorReply(400, 'The limit must be a whole number from 1 to 1000'),
  unauthorized: errorReply(401, 'A valid x-api-key is needed'),
  adminUnauthorized: errorReply(401, 'A valid bearer token is needed'),
  adminLocalOnly: errorReply(403, 'Without ADMIN_TOKEN only local requests are answered'),
  notFound: errorReply(404, 'Not found'),
  noSuchPolicy: errorReply(404, 'There is no rule of this name'),
  methodNotAllowed: errorReply(405, 'Method not allowed'),
  requestTimeout: errorReply(408, 'The request did not arrive in time'),
  bodyTooLarge: errorReply(413, 'The request body is too large'),
  targetTooLong: errorReply(414, 'The request target is too long'),
  notJson: errorReply(415, 'The body must be application/json'),
  expectationFailed: errorReply(417, 'Only 100-continue can be expected'),
  upgradeRequired: errorReply(426, 'WebSocket is served in version 13'),
  tooManyRequests: errorReply(429, 'Too many requests, Please try after a while!'),
  tooManyTokens: errorReply(429, 'Too many wrong tokens from this address: try again later'),
  fieldsTooLarge: errorReply(431, 'The request header fields are too large'),
  internal: errorReply(500, 'Internal error'),
  codingNotImplemented: errorReply(501, 'Only the transfer coding chunked can be read'),
  badGateway: errorReply(502, 'The backend cannot be reached'),
  http2Unsupported: errorReply(502, 'The backend answers with HTTP/2, and is asked in HTTP/1.1'),
  grpcUnsupported: errorReply(502, 'gRPC is not supported yet: the backend is asked in HTTP/1.1'),
  limiterUnavailable: errorReply(503, 'The rate limiter is not available'),
  storeAway: errorReply(503, 'Redis does not answer: nothing was reset'),
  resetUncertain: errorReply(503, 'The reset was not confirmed everywhere: repeat it'),
  backendBusy: errorReply(503, 'The backend is busy'),
  gatewayBusy: errorReply(503, 'The gateway is busy'),
  stopping: errorReply(503, 'The gateway is stopping'),
  gatewayTimeout: errorReply(504, 'The backend did not answer in time'),
  versionNotSupported: errorReply(505, 'Only HTTP/1.0 and HTTP/1.1 are served here'),
} as const
