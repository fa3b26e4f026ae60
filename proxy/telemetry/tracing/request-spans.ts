import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Context,
  type Span,
  type TextMapGetter,
  type TextMapSetter,
  type Tracer,
} from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { loggedCounter, type Access } from '../access-log.ts'
import type { RequestTrace, TracedDecision, TracedRequest, UpstreamTrace } from './tracing.ts'

export type SpanOptions = {
  readonly tracer: Tracer
  readonly scheme: 'http' | 'https'
  /** Host name and port of `upstream`. They are unknown for a route, because one of its servers is chosen later. */
  readonly upstream: { readonly address: string; readonly port: number }
  /** Whether spans may name clients. */
  readonly logAddresses: boolean
}

/** The methods that span names distinguish. Clients may send any word, but there must be few span names. */
const methods = new Set([
  'CONNECT',
  'DELETE',
  'GET',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'POST',
  'PUT',
  'QUERY',
  'TRACE',
])

/** Maximum length of an attribute that clients write: a path, or a method that is not in `methods`. */
const TEXT_MAX_LENGTH = 1024

const propagator = new W3CTraceContextPropagator()

const readHeader: TextMapGetter<TracedRequest['headers']> = {
  keys: (headers) => Object.keys(headers),
  get(headers, name) {
    const value = headers[name]
    // A repeated header is not a trace context (W3C Trace Context section 3.2.1), and an array could not be parsed.
    return typeof value === 'string' ? value : undefined
  },
}

const writeHeader: TextMapSetter<string[]> = {
  set: (fields, name, value) => void fields.push(name, value),
}

/**
 * The spans of one request, with the names and attributes of OpenTelemetry's HTTP conventions. Neither the query nor a header becomes an
 * attribute. The path is the same as in the access log.
 */
export class RequestSpans implements RequestTrace {
  readonly #options: SpanOptions
  /** The attributes for the method, the same in both spans. */
  readonly #method: Readonly<Record<string, string>>
  /** The conventions use `HTTP` for unknown methods. */
  readonly #name: string
  readonly #span: Span
  readonly #context: Context
  #decision: Span | undefined
  #upstream: UpstreamSpan | undefined

  constructor(options: SpanOptions, request: TracedRequest) {
    const { method = '', headers, httpVersion } = request
    this.#options = options
    const isKnown = methods.has(method)
    this.#name = isKnown ? method : 'HTTP'
    this.#method = isKnown
      ? { 'http.request.method': method }
      : { 'http.request.method': '_OTHER', 'http.request.method_original': method.slice(0, TEXT_MAX_LENGTH) }
    const parent = propagator.extract(ROOT_CONTEXT, headers, readHeader)
    this.#span = options.tracer.startSpan(
      this.#name,
      {
        kind: SpanKind.SERVER,
        attributes: {
          ...this.#method,
          'url.scheme': options.scheme,
          'network.protocol.version': httpVersion === '2.0' ? '2' : httpVersion,
        },
      },
      parent,
    )
    this.#context = trace.setSpan(parent, this.#span)
  }

  asked(policies: readonly string[]): void {
    this.#decision = this.#options.tracer.startSpan(
      'decision',
      { kind: SpanKind.INTERNAL, attributes: { 'sluice.policies': [...policies] } },
      this.#context,
    )
  }

  decided({ outcome, refusedBy, withoutStore }: TracedDecision): void {
    this.#decision?.setAttribute('sluice.outcome', outcome)
    if (refusedBy !== undefined) this.#decision?.setAttribute('sluice.refused_by', refusedBy)
    if (withoutStore) this.#decision?.setAttribute('sluice.without_store', true)
    if (outcome === 'unavailable') this.#decision?.setStatus({ code: SpanStatusCode.ERROR })
    this.#endDecision()
  }

  forwarded(route: string | undefined): UpstreamTrace {
    const { tracer, upstream } = this.#options
    const span = tracer.startSpan(
      this.#name,
      {
        kind: SpanKind.CLIENT,
        attributes: {
          ...this.#method,
          ...(route === undefined
            ? { 'server.address': upstream.address, 'server.port': upstream.port }
            : { 'sluice.route': route }),
        },
      },
      this.#context,
    )
    return (this.#upstream = new UpstreamSpan(span, trace.setSpan(this.#context, span)))
  }

  finished(access: Access): void {
    // End spans that are still open because the client disconnected.
    this.#endDecision()
    this.#upstream?.ended()
    const {
      status,
      path,
      requestId,
      clientAddress,
      route,
      routedBy,
      delayedMs,
      refusedBy,
      list,
      rejected,
      wouldBeRefusedBy,
    } = access
    const counter = loggedCounter(access, this.#options)
    const span = this.#span
    span.setAttribute('sluice.request_id', requestId)
    if (path !== '') span.setAttribute('url.path', path.slice(0, TEXT_MAX_LENGTH))
    if (this.#options.logAddresses) span.setAttribute('client.address', clientAddress)
    if (route !== undefined) span.setAttribute('sluice.route', route)
    if (routedBy !== undefined) span.setAttribute('sluice.routed_by', routedBy)
    if (delayedMs !== undefined) span.setAttribute('sluice.delayed_ms', delayedMs)
    if (refusedBy !== undefined) span.setAttribute('sluice.refused_by', refusedBy)
    if (counter !== undefined) span.setAttribute('sluice.counter', counter)
    if (list !== undefined) span.setAttribute('sluice.list', list)
    if (rejected !== undefined) span.setAttribute('sluice.rejected', rejected)
    if (wouldBeRefusedBy) span.setAttribute('sluice.would_be_refused_by', [...wouldBeRefusedBy])
    if (status > 0) span.setAttribute('http.response.status_code', status)
    if (status >= 500) fail(span, String(status))
    span.end()
  }

  #endDecision(): void {
    this.#decision?.end()
    this.#decision = undefined
  }
}

class UpstreamSpan implements UpstreamTrace {
  readonly headers: readonly string[]
  #span: Span | undefined

  constructor(span: Span, context: Context) {
    this.#span = span
    const fields: string[] = []
    propagator.inject(context, fields, writeHeader)
    this.headers = fields
  }

  answered(status: number): void {
    this.#span?.setAttribute('http.response.status_code', status)
    // The gateway is the client here, and to a client, 4xx is an error, too.
    if (status >= 400 && this.#span) fail(this.#span, String(status))
  }

  ended(): void {
    this.#span?.end()
    this.#span = undefined
  }

  failed(kind: string): void {
    if (this.#span) fail(this.#span, kind)
    this.ended()
  }
}

function fail(span: Span, errorType: string): void {
  span.setAttribute('error.type', errorType)
  span.setStatus({ code: SpanStatusCode.ERROR })
}
