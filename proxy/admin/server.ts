import type { IncomingMessage, RequestListener, ServerOptions, ServerResponse } from 'node:http'
import { ErrorReply, errors } from '../../shared/error-replies.ts'
import { createExceptionLog } from '../../shared/exception-log.ts'
import type { Log } from '../../shared/log.ts'
import { namesOneHost } from '../../shared/node-http-errors.ts'
import { METRICS_CONTENT_TYPE } from '../telemetry/metrics/prometheus.ts'
import { createAdminAccess } from './access.ts'
import type { ApiRoute } from './api/api.ts'
import { mayAnswer, serveOperator } from './connections.ts'
import type { HealthReport } from './health.ts'
import { readJson } from './read-json.ts'
import type { LiveEvents } from './page/live-events.ts'
import { isKnown, pageFields, readPageFiles, type PageFile } from './page/page-files.ts'

export type AdminDeps = {
  /** `ADMIN_TOKEN`. Without a token, only local requests are answered, so the listener must be on a loopback address. */
  readonly token: string | undefined
  readonly readHealth: () => HealthReport | Promise<HealthReport>
  readonly readMetrics: () => Promise<string>
  readonly apiRoutes: ReadonlyMap<string, ApiRoute>
  /** Events for `/api/events`; without them, the path does not exist. */
  readonly liveEvents?: LiveEvents
  readonly log: Log
}

/** Options of the admin server. Its clients are operators' tools, which are few, near and fast. */
export const adminServerOptions: ServerOptions = {
  maxHeaderSize: 8 * 1024,
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  // Applies to probes and to clients without a valid token. Operators' connections are kept for longer.
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 2_000,
  // The handler checks `Host`, so that the error has the same format as all others.
  requireHostHeader: false,
}

type Reply = {
  readonly status: number
  readonly contentType: string
  /** The body; undefined if the status has no body. */
  readonly body: string | Buffer | undefined
  readonly fields?: Readonly<Record<string, string>>
}

/** An answer that sends its response by itself. `begin` returns false if an error must be sent instead. */
type Stream = { readonly begin: (request: IncomingMessage, response: ServerResponse) => boolean }

type Answer = (
  query: URLSearchParams,
  body: unknown,
  request: IncomingMessage,
) => Reply | Stream | Promise<Reply>
type Routes = ReadonlyMap<string, Readonly<Partial<Record<string, Answer>>>>

/**
 * Creates the handler of the admin listener. It answers `/livez`, `/readyz` and the files of the page to everybody, `/metrics` and `/api/…`
 * only to clients with access. An exception is logged and answered with a 500. The composition root makes the server itself, with
 * `adminServerOptions` and `limitConnections`.
 */
export function createAdminHandler(deps: AdminDeps): RequestListener {
  const refuse = createAdminAccess(deps.token)
  const routes = createRoutes(deps)

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<Reply | Stream> => {
    if (!namesOneHost(request)) return errorReply(errors.badRequest)
    const { path, query } = splitTarget(request.url ?? '')
    const guarded = isGuarded(path)
    const refusal = guarded ? await refuse(request) : undefined
    if (guarded && !refusal) serveOperator(request, response, { proven: deps.token !== undefined })
    if (refusal) return errorReply(refusal.error, refusal.fields)

    const route = routes.get(path)
    if (!route) return errorReply(errors.notFound)
    // Closing the connection is cheaper than reading an unwanted body.
    const close: Record<string, string> = hasBody(request) ? { Connection: 'close' } : {}
    if (hasBody(request) && !route['POST']) return errorReply(errors.bodyTooLarge, close)

    const method = request.method === 'HEAD' ? 'GET' : (request.method ?? '')
    const respond = route[method]
    if (!respond) return errorReply(errors.methodNotAllowed, { ...close, Allow: allowedMethods(route) })
    if (method === 'GET') return respond(query, undefined, request)
    const body = await readJson(request)
    return 'error' in body ? errorReply(body.error, close) : respond(query, body.value, request)
  }

  const logException = createExceptionLog(deps.log)
  return (request, response) => {
    if (!mayAnswer(request, response)) return
    answer(request, response)
      .catch((error: unknown) => {
        logException({ err: error }, 'exception while handling an admin request')
        return errorReply(errors.internal)
      })
      .then((reply) => {
        if (!('begin' in reply)) send(response, reply)
        else if (!reply.begin(request, response)) send(response, errorReply(errors.tooManyListeners))
      })
      .catch((error: unknown) => {
        logException({ err: error }, 'exception while sending an admin response')
        response.destroy()
      })
  }
}

function createRoutes({ readHealth, readMetrics, apiRoutes, liveEvents, token }: AdminDeps): Routes {
  const routes = new Map<string, Record<string, Answer>>([
    ['/livez', { GET: () => json(200, { status: 'alive' }) }],
    ['/readyz', { GET: async () => readiness(await readHealth()) }],
    ['/metrics', { GET: async () => text(await readMetrics()) }],
  ])
  for (const [path, answers] of apiRoutes) {
    const route: Record<string, Answer> = {}
    for (const [method, answer] of Object.entries(answers)) {
      if (answer) route[method] = async (query, body) => answerReply(await answer(query, body))
    }
    routes.set(path, route)
  }
  for (const [path, file] of readPageFiles(token !== undefined)) {
    routes.set(path, { GET: (_query, _body, { headers }) => pageReply(file, headers['if-none-match']) })
  }
  if (liveEvents)
    routes.set('/api/events', {
      GET: () => ({ begin: (request, response) => liveEvents.follow(request, response) }),
    })
  return routes
}

function isGuarded(path: string): boolean {
  return path === '/metrics' || path.startsWith('/api/')
}

function splitTarget(target: string): { path: string; query: URLSearchParams } {
  const at = target.indexOf('?')
  if (at === -1) return { path: target, query: new URLSearchParams() }
  return { path: target.slice(0, at), query: new URLSearchParams(target.slice(at + 1)) }
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function allowedMethods(route: object): string {
  return Object.keys(route)
    .flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .join(', ')
}

/** Leaves out the addresses of the servers, which only operators may see. */
function readiness({ status, store, upstream, servers }: HealthReport): Reply {
  return json(status === 'ready' ? 200 : 503, { status, store, upstream, servers })
}

function pageReply(file: PageFile, ifNoneMatch: string | undefined): Reply {
  const { contentType, body, etag } = file
  const fields = { ...pageFields, ETag: etag }
  return isKnown(file, ifNoneMatch)
    ? { status: 304, contentType, body: undefined, fields }
    : { status: 200, contentType, body, fields }
}

function text(body: string): Reply {
  return { status: 200, contentType: METRICS_CONTENT_TYPE, body }
}

function json(status: number, value: unknown): Reply {
  return { status, contentType: 'application/json', body: JSON.stringify(value ?? null) }
}

function answerReply(answer: unknown): Reply {
  return answer instanceof ErrorReply ? errorReply(answer) : json(200, answer)
}

function errorReply(error: ErrorReply, fields: Readonly<Record<string, string>> = {}): Reply {
  return { status: error.status, contentType: 'application/json', body: error.body, fields }
}

function send(response: ServerResponse, { status, contentType, body, fields }: Reply): void {
  response.writeHead(status, {
    'Content-Type': contentType,
    ...(body !== undefined && { 'Content-Length': Buffer.byteLength(body) }),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    ...fields,
  })
  // Node omits the body of a response to HEAD.
  response.end(body)
}
