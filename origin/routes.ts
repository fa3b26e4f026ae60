import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { errors } from '../shared/error-replies.ts'
import { createExceptionLog } from '../shared/exception-log.ts'
import type { Log } from '../shared/log.ts'
import { namesOneHost } from '../shared/node-http-errors.ts'
import type { KeyStore } from './key-store.ts'
import { sendError, sendJson } from './respond.ts'

export type RoutesDeps = {
  readonly keys: Pick<KeyStore, 'findEnvironment'>
  readonly log: Log
  readonly makeRequestId: () => string
}

/** Responds to GET or HEAD. Node omits the body of a response to HEAD. */
type Route = (request: IncomingMessage, response: ServerResponse) => void

export const allowedMethods = 'GET, HEAD, OPTIONS'
const allow = { allow: allowedMethods }
// RFC 9110 section 11.6.1 requires a challenge in a 401.
const challenge = { 'www-authenticate': 'ApiKey header="x-api-key"' }
const healthy = Buffer.from('{"status":"ok"}')

/** Makes the routes of the origin. Request bodies are ignored: Node reads and drops them. */
export function createRoutes({ keys, log, makeRequestId }: RoutesDeps): RequestListener {
  const routes = new Map<string, Route>([
    ['/api/v1/me', (request, response) => answerMe(keys, request, response)],
    ['/health', (_, response) => sendJson(response, 200, healthy)],
  ])

  const logException = createExceptionLog(log)
  return (request, response) => {
    try {
      answer(routes, request, response)
    } catch (error) {
      logException(
        { err: error, requestId: readRequestId(request) ?? makeRequestId() },
        'exception while handling a request',
      )
      sendError(response, errors.internal)
    }
  }
}

function answer(routes: Map<string, Route>, request: IncomingMessage, response: ServerResponse): void {
  const { method, url = '' } = request
  const path = pathOf(url)
  if (!namesOneHost(request) || path === undefined) return sendError(response, errors.badRequest)
  const route = routes.get(path)
  if (method === 'OPTIONS' && (route || path === '*')) {
    response.writeHead(204, allow).end()
    return
  }
  if (path === '*') return sendError(response, errors.badRequest)
  if (!route) return sendError(response, errors.notFound)
  if (method !== 'GET' && method !== 'HEAD') return sendError(response, errors.methodNotAllowed, allow)
  route(request, response)
}

function answerMe(keys: RoutesDeps['keys'], request: IncomingMessage, response: ServerResponse): void {
  // `headers` would join repeated headers into one value.
  const given = request.headersDistinct['x-api-key'] ?? []
  const [key] = given
  const environment = key && given.length === 1 ? keys.findEnvironment(key) : undefined
  if (environment) sendJson(response, 200, Buffer.from(JSON.stringify(environment)))
  else sendError(response, errors.unauthorized, challenge)
}

/** The path of a target in origin-form, absolute-form or asterisk-form (RFC 9112 section 3.2); undefined for any other. */
function pathOf(target: string): string | undefined {
  if (target.startsWith('/')) return target.split('?', 1)[0]
  if (target === '*') return target
  return /^https?:\/\//i.test(target) && URL.canParse(target) ? new URL(target).pathname : undefined
}

/** Returns the request id that the gateway has set, which identifies the request in both logs. */
function readRequestId({ headers }: IncomingMessage): string | undefined {
  const given = headers['x-request-id']
  return typeof given === 'string' && /^[A-Za-z0-9._:/=+-]{1,128}$/.test(given) ? given : undefined
}
