import type { Access } from '../access-log.ts'
import type { TableUse } from '../telemetry.ts'

/** The data of a request with which its first span begins. */
export type TracedRequest = {
  readonly method?: string | undefined
  readonly httpVersion: string
  /** Headers by lower-case name; only `traceparent` and `tracestate` are read. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

/** Records requests as OpenTelemetry spans and sends them to a collector. No request ever waits for the collector. */
export type Tracing = {
  /** Begins the span of a request, in the trace that its `traceparent` names or else in a new one. */
  begin(request: TracedRequest): RequestTrace
  /** Reads the number of spans waiting to be sent. If the buffer is full, spans are dropped, which counts as evictions. */
  readUse(): TableUse
  /** Flushes the buffered spans, within two seconds. Never rejects. */
  close(): Promise<void>
}

/** The spans of one request. */
export type RequestTrace = {
  /**
   * Begins the span of the decision.
   *
   * @param policies names of the rules that count the request
   */
  asked(policies: readonly string[]): void
  /** Ends the span of the decision. */
  decided(decision: TracedDecision): void
  /**
   * Begins the span of the request to the backend.
   *
   * @param route the name of the request's route; undefined if the request goes to `upstream`
   */
  forwarded(route: string | undefined): UpstreamTrace
  /** Ends the span of the request, and any open spans of its steps. */
  finished(access: Access): void
}

export type TracedDecision = {
  readonly outcome: 'allowed' | 'refused' | 'unavailable'
  /** Name of the rule that refused the request. */
  readonly refusedBy?: string | undefined
  /** Whether the request was counted in this process alone, or not at all. */
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
  /** @param kind the kind of failure, one of a few words of this program */
  failed(kind: string): void
}
