import { STATUS_CODES } from './node-http.ts'

/**
 * Every error reply of Sluice and the origin, one line each: status and text.
 * The body is always `{"code": <status>, "error": <text>}` as `application/json`.
 */
export type ErrorReply = {
  readonly status: number
  /** The reason phrase of the status, for code that writes the response as text. */
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
  authRequestUnreadable: errorReply(
    400,
    'The auth request lacks a header that describes the original request',
  ),
  plainHttp: errorReply(400, 'Plain HTTP request sent to an HTTPS port'),
  jsonUnreadable: errorReply(400, 'The body is not valid JSON'),
  questionUnreadable: errorReply(400, 'The body must be a JSON object with client and, optionally, policy'),
  clientUnreadable: errorReply(400, 'The client must be an object such as {"ip": "192.0.2.7"}'),
  clientAddressUnreadable: errorReply(
    400,
    "The ip of the client is not a valid IP address: name other clients by the parts of the rule's key, such as header:x-api-key",
  ),
  clientIsNetwork: errorReply(
    400,
    'The client must be one address, or a network that a rule counts by: other networks go into denyList, allowList or the overrides of a rule in sluice.yaml',
  ),
  clientPartsDiffer: errorReply(400, 'The client must have a value for each part of the key of the rule'),
  planKeyUnclear: errorReply(
    400,
    'Rules with stored plans count this client by different keys: name the policy',
  ),
  banUnreadable: errorReply(
    400,
    'The body must be a JSON object with client and for and, optionally, policy and reason',
  ),
  overrideUnreadable: errorReply(
    400,
    'The body must be a JSON object with policy, client, requests and for and, optionally, label',
  ),
  overrideRemovalUnreadable: errorReply(400, 'The body must be a JSON object with policy and client'),
  durationUnreadable: errorReply(400, 'for must be a duration from 1s to 365d, such as 90s, 15m or 7d'),
  reasonUnreadable: errorReply(400, 'reason must be a text in one line, of at most 200 characters'),
  labelUnreadable: errorReply(400, 'label must be a text in one line, of at most 200 characters'),
  requestsUnreadable: errorReply(
    400,
    'requests must be a whole number within the bounds of the algorithm of the rule, and at least what one request reserves',
  ),
  planUnreadable: errorReply(
    400,
    'The body must be a JSON object with client and, optionally, policy and plan: a name, or null to remove it',
  ),
  entriesLimitUnreadable: errorReply(400, 'limit must be a whole number from 1 to 10000'),
  explainUnreadable: errorReply(
    400,
    'The body must be a JSON object with method and target and, optionally, host, ip and headers',
  ),
  explainAddressUnreadable: errorReply(400, 'ip must be the IP address that the connection comes from'),
  explainHeadersUnreadable: errorReply(
    400,
    'headers must be an object of names, each with its value or a list of values, without line ends',
  ),
  reloadUnreadable: errorReply(400, 'The body must be an empty JSON object'),
  clientGlobal: errorReply(400, 'All clients together cannot be banned'),
  listLimitUnreadable: errorReply(400, 'limit must be a whole number from 1 to 1000'),
  unauthorized: errorReply(401, 'Missing or invalid x-api-key header'),
  adminUnauthorized: errorReply(401, 'Missing or invalid bearer token'),
  forbidden: errorReply(403, 'Forbidden'),
  adminLocalOnly: errorReply(403, 'Without ADMIN_TOKEN, only local requests are allowed'),
  notFound: errorReply(404, 'Not found'),
  noSuchPlan: errorReply(404, 'No rule with plan: store that counts this client has a plan of this name'),
  noStoredPlans: errorReply(404, 'No rule with plan: store counts this client'),
  noSuchPolicy: errorReply(404, 'There is no rule with this name'),
  methodNotAllowed: errorReply(405, 'Method not allowed'),
  requestTimeout: errorReply(408, 'The request did not arrive in time'),
  tooManyPlans: errorReply(
    409,
    'There are already 100000 plans in memory: remove some first, or set REDIS_URL',
  ),
  tooManyEntries: errorReply(409, 'There are already 10000 entries of this kind: remove some first'),
  bodyTooLarge: errorReply(413, 'The request body is too large'),
  targetTooLong: errorReply(414, 'The request target is too long'),
  notJson: errorReply(415, 'The body must be application/json'),
  expectationFailed: errorReply(417, 'Unsupported Expect header'),
  settingsWrong: errorReply(422, 'The settings are invalid; the current limits stay in effect'),
  upgradeRequired: errorReply(426, 'Only WebSocket version 13 is supported'),
  tooManyRequests: errorReply(429, 'Too many requests, Please try after a while!'),
  tooManyTokens: errorReply(429, 'Too many wrong tokens from this address: try again later'),
  fieldsTooLarge: errorReply(431, 'The request header fields are too large'),
  internal: errorReply(500, 'Internal error'),
  codingNotImplemented: errorReply(501, 'Unsupported Transfer-Encoding: only chunked is supported'),
  badGateway: errorReply(502, 'The backend cannot be reached'),
  backendSpeaksHttp2: errorReply(502, 'The backend speaks HTTP/2, so its URL must begin with h2c://'),
  limiterUnavailable: errorReply(503, 'The rate limiter is not available'),
  storeAway: errorReply(503, 'Redis is not available: nothing was reset'),
  storeAwayUnchanged: errorReply(503, 'Redis is not available: nothing was changed'),
  changeUncertain: errorReply(503, 'The change was not confirmed: try again'),
  resetUncertain: errorReply(503, 'The reset was not confirmed everywhere: try again'),
  explainUnanswered: errorReply(503, 'No worker answered: try again'),
  reloadFailed: errorReply(503, 'Not all workers applied the new limits; the current limits stay in effect'),
  tooManyListeners: errorReply(503, 'The event stream has 8 listeners already'),
  backendBusy: errorReply(503, 'The backend is busy'),
  gatewayBusy: errorReply(503, 'The gateway is busy'),
  stopping: errorReply(503, 'The gateway is stopping'),
  gatewayTimeout: errorReply(504, 'The backend did not answer in time'),
  versionNotSupported: errorReply(505, 'Only HTTP/1.0 and HTTP/1.1 are supported here'),
} as const
