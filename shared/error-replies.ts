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
  jsonUnreadable: errorReply(400, 'The body is not valid JSON'),
  questionUnreadable: errorReply(400, 'The body must be a JSON object with client and, optionally, policy'),
  clientUnreadable: errorReply(400, 'The client must be an object such as {"ip": "192.0.2.7"}'),
  clientAddressUnreadable: errorReply(400, 'The ip of the client is not a valid IP address'),
  clientPartsDiffer: errorReply(400, 'The client must have a value for each part of the key of the rule'),
  listLimitUnreadable: errorReply(400, 'The limit must be a whole number from 1 to 1000'),
  unauthorized: errorReply(401, 'A valid x-api-key is needed'),
  adminUnauthorized: errorReply(401, 'A valid bearer token is needed'),
  forbidden: errorReply(403, 'Forbidden'),
  adminLocalOnly: errorReply(403, 'Without ADMIN_TOKEN, only local requests are allowed'),
  notFound: errorReply(404, 'Not found'),
  noSuchPolicy: errorReply(404, 'There is no rule with this name'),
  methodNotAllowed: errorReply(405, 'Method not allowed'),
  requestTimeout: errorReply(408, 'The request did not arrive in time'),
  bodyTooLarge: errorReply(413, 'The request body is too large'),
  targetTooLong: errorReply(414, 'The request target is too long'),
  notJson: errorReply(415, 'The body must be application/json'),
  expectationFailed: errorReply(417, 'Unsupported Expect header'),
  upgradeRequired: errorReply(426, 'Only WebSocket version 13 is supported'),
  tooManyRequests: errorReply(429, 'Too many requests, Please try after a while!'),
  tooManyTokens: errorReply(429, 'Too many wrong tokens from this address: try again later'),
  fieldsTooLarge: errorReply(431, 'The request header fields are too large'),
  internal: errorReply(500, 'Internal error'),
  codingNotImplemented: errorReply(501, 'Unsupported Transfer-Encoding: only chunked is supported'),
  badGateway: errorReply(502, 'The backend cannot be reached'),
  http2Unsupported: errorReply(502, 'The backend answered with HTTP/2, which is not supported yet'),
  grpcUnsupported: errorReply(502, 'gRPC is not supported yet'),
  limiterUnavailable: errorReply(503, 'The rate limiter is not available'),
  storeAway: errorReply(503, 'Redis is not available: nothing was reset'),
  resetUncertain: errorReply(503, 'The reset was not confirmed everywhere: try again'),
  backendBusy: errorReply(503, 'The backend is busy'),
  gatewayBusy: errorReply(503, 'The gateway is busy'),
  stopping: errorReply(503, 'The gateway is stopping'),
  gatewayTimeout: errorReply(504, 'The backend did not answer in time'),
  versionNotSupported: errorReply(505, 'Only HTTP/1.0 and HTTP/1.1 are supported here'),
} as const
