import type { Access } from '../access-log.ts'
import type { TableUse } from '../telemetry.ts'

/** The request data of the first span. */
export type TracedRequest = {
  readonly method?: string | undefined
  readonly httpVersion: string
  /** Headers by lower-case name; only `traceparent` and `tracestate` are read. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

/** Records requests as OpenTelemetry spans and sends them to a collector. No request ever waits for it. */
export type Tracing = {
  /** Begins the span of a request: in the trace that its `traceparent` names, else in a new one. */
  begin(request: TracedRequest): RequestTrace
  /** Spans that wait to be sent. If there is no room, they are dropped, which counts as an eviction. */
  readUse(): TableUse
  /** Flushes the buffered spans, in no more than two seconds. Never rejects. */
  close(): Promise<void>
}

/** The spans of one request. */
export type RequestTrace = {
  /**
   * Begins the span of the decision.
   *
   * @param policies names of the rules that the request is counted by
   */
  asked(policies: readonly string[]): void
  /** Ends it. */
  decided(decision: TracedDecision): void
  /**
   * Begins the span of the request to the backend.
   *
   * @param route the name of the route that it takes; undefined: it goes to `upstream`
   */
  forwarded(route: string | undefined): UpstreamTrace
  /** Ends the span of the request, and spans of its steps that have not ended. */
  finished(access: Access): void
}

export type TracedDecision = {
  readonly outcome: 'allowed' | 'refused' | 'unavailable'
  /** Name of the rule that refused it. */
  readonly refusedBy?: string | undefined
  /** Counted in this process alone, or not at all. */
  readonly withoutStore?: boolean | undefined
}

/** The span of a request to the backend. It ends once; later calls have no effect. */
export type UpstreamTrace = {
  /** `traceparent` and, if there is one, `tracestate` of this span: name, value, name, value… */
  readonly headers: readonly string[]
  /** The response head has arrived. */
  answered(status: number): void
  /** The response is complete, or has become a tunnel. */
  ended(): void
  /** @param kind a word of this program */
  failed(kind: string): void
}
