import { STATUS_CODES } from './node-http.ts'

/** An error reply of Sluice or the origin. The body is `{"code": <status>, "error": <text>}` as `application/json`. */
export class ErrorReply {
  readonly status: number
  /** The reason phrase of the status, for code that writes the response as text. */
  readonly reason: string
  readonly text: string
  /** The body as sent, made once. */
  readonly body: Buffer

  /** @param details further members of the body */
  constructor(status: number, text: string, details: object = {}) {
    this.status = status
    this.reason = STATUS_CODES[status] ?? ''
    this.text = text
    this.body = Buffer.from(JSON.stringify({ code: status, error: text, ...details }))
  }
}

/** Every error reply, one line each: status and text. */
export const errors = {
  badRequest: new ErrorReply(400, 'Bad request'),
  authRequestUnreadable: new ErrorReply(
    400,
    'The auth request lacks a header that describes the original request',
  ),
  plainHttp: new ErrorReply(400, 'Plain HTTP request sent to an HTTPS port'),
  jsonUnreadable: new ErrorReply(400, 'The body is not valid JSON'),
  questionUnreadable: new ErrorReply(
    400,
    'The body must be a JSON object with client and, optionally, policy',
  ),
  clientUnreadable: new ErrorReply(400, 'The client must be an object such as {"ip": "192.0.2.7"}'),
  clientAddressUnreadable: new ErrorReply(
    400,
    "The ip of the client is not a valid IP address: name other clients by the parts of the rule's key, such as header:x-api-key",
  ),
  clientIsNetwork: new ErrorReply(
    400,
    'The client must be one address, or a network that a rule counts by: other networks go into denyList, allowList or the overrides of a rule in sluice.yaml',
  ),
  clientPartsDiffer: new ErrorReply(400, 'The client must have a value for each part of the key of the rule'),
  planKeyUnclear: new ErrorReply(
    400,
    'Rules with stored plans count this client by different keys: name the policy',
  ),
  banUnreadable: new ErrorReply(
    400,
    'The body must be a JSON object with client and for and, optionally, policy and reason',
  ),
  overrideUnreadable: new ErrorReply(
    400,
    'The body must be a JSON object with policy, client, requests and for and, optionally, label',
  ),
  overrideRemovalUnreadable: new ErrorReply(400, 'The body must be a JSON object with policy and client'),
  durationUnreadable: new ErrorReply(400, 'for must be a duration from 1s to 365d, such as 90s, 15m or 7d'),
  reasonUnreadable: new ErrorReply(400, 'reason must be a text in one line, of at most 200 characters'),
  labelUnreadable: new ErrorReply(400, 'label must be a text in one line, of at most 200 characters'),
  requestsUnreadable: new ErrorReply(400, 'requests must be a whole number from 1 to 1000000000'),
  planUnreadable: new ErrorReply(
    400,
    'The body must be a JSON object with client and, optionally, policy and plan: a name, or null to remove it',
  ),
  entriesLimitUnreadable: new ErrorReply(400, 'limit must be a whole number from 1 to 10000'),
  explainUnreadable: new ErrorReply(
    400,
    'The body must be a JSON object with method and target and, optionally, host, ip and headers',
  ),
  explainAddressUnreadable: new ErrorReply(400, 'ip must be the IP address that the connection comes from'),
  explainHeadersUnreadable: new ErrorReply(
    400,
    'headers must be an object of names, each with its value or a list of values, without line ends',
  ),
  reloadUnreadable: new ErrorReply(400, 'The body must be an empty JSON object'),
  clientGlobal: new ErrorReply(400, 'All clients together cannot be banned'),
  listLimitUnreadable: new ErrorReply(400, 'limit must be a whole number from 1 to 1000'),
  unauthorized: new ErrorReply(401, 'Missing or invalid x-api-key header'),
  adminUnauthorized: new ErrorReply(401, 'Missing or invalid bearer token'),
  forbidden: new ErrorReply(403, 'Forbidden'),
  adminLocalOnly: new ErrorReply(403, 'Without ADMIN_TOKEN, only local requests are allowed'),
  notFound: new ErrorReply(404, 'Not found'),
  noSuchPlan: new ErrorReply(404, 'No rule with plan: store that counts this client has a plan of this name'),
  noStoredPlans: new ErrorReply(404, 'No rule with plan: store counts this client'),
  noSuchPolicy: new ErrorReply(404, 'There is no rule with this name'),
  methodNotAllowed: new ErrorReply(405, 'Method not allowed'),
  requestTimeout: new ErrorReply(408, 'The request did not arrive in time'),
  tooManyPlans: new ErrorReply(
    409,
    'There are already 100000 plans in memory: remove some first, or set REDIS_URL',
  ),
  tooManyEntries: new ErrorReply(409, 'There are already 10000 entries of this kind: remove some first'),
  bodyTooLarge: new ErrorReply(413, 'The request body is too large'),
  targetTooLong: new ErrorReply(414, 'The request target is too long'),
  notJson: new ErrorReply(415, 'The body must be application/json'),
  expectationFailed: new ErrorReply(417, 'Unsupported Expect header'),
  settingsWrong: new ErrorReply(422, 'The settings are invalid; the current limits stay in effect'),
  upgradeRequired: new ErrorReply(426, 'Only WebSocket version 13 is supported'),
  tooManyRequests: new ErrorReply(429, 'Too many requests, Please try after a while!'),
  tooManyTokens: new ErrorReply(429, 'Too many wrong tokens from this address: try again later'),
  fieldsTooLarge: new ErrorReply(431, 'The request header fields are too large'),
  internal: new ErrorReply(500, 'Internal error'),
  codingNotImplemented: new ErrorReply(501, 'Unsupported Transfer-Encoding: only chunked is supported'),
  badGateway: new ErrorReply(502, 'The backend cannot be reached'),
  backendSpeaksHttp2: new ErrorReply(502, 'The backend speaks HTTP/2, so its URL must begin with h2c://'),
  limiterUnavailable: new ErrorReply(503, 'The rate limiter is not available'),
  storeAway: new ErrorReply(503, 'Redis is not available: nothing was reset'),
  storeAwayUnread: new ErrorReply(503, 'Redis is not available: plans cannot be read'),
  storeAwayUnchanged: new ErrorReply(503, 'Redis is not available: nothing was changed'),
  changeUncertain: new ErrorReply(503, 'The change was not confirmed: try again'),
  resetUncertain: new ErrorReply(503, 'The reset was not confirmed everywhere: try again'),
  explainUnanswered: new ErrorReply(503, 'No worker answered: try again'),
  reloadFailed: new ErrorReply(
    503,
    'Not all workers applied the new limits; the current limits stay in effect',
  ),
  tooManyListeners: new ErrorReply(503, 'The event stream has 8 listeners already'),
  backendBusy: new ErrorReply(503, 'The backend is busy'),
  gatewayBusy: new ErrorReply(503, 'The gateway is busy'),
  stopping: new ErrorReply(503, 'The gateway is stopping'),
  gatewayTimeout: new ErrorReply(504, 'The backend did not answer in time'),
  versionNotSupported: new ErrorReply(505, 'Only HTTP/1.0 and HTTP/1.1 are supported here'),
} as const
