import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type Sampler,
} from '@opentelemetry/sdk-trace'
import { errorText } from '../../../shared/error-text.ts'
import type { Log } from '../../../shared/log.ts'
import { within } from '../../../shared/within.ts'
import { paceLines } from '../paced-lines.ts'
import { RequestSpans, type SpanOptions } from './request-spans.ts'
import type { SamplerName } from './samplers.ts'
import { createSpanQueue } from './span-queue.ts'
import type { Tracing } from './tracing.ts'

export type TracingOptions = Omit<SpanOptions, 'tracer'> & {
  /** URL of the collector that spans are posted to. */
  readonly url: string
  readonly sampler: SamplerName
  /** The fraction of traces to record, from 0 to 1, for samplers by ratio. */
  readonly samplerArg: number
  /** Milliseconds for which spans are buffered before they are sent together. */
  readonly delayMs: number
  readonly version: string
  readonly log: Log
}

/** How long the exit of the process waits for the collector. */
const FLUSH_MS = 2_000
/** Minimum time between two log lines about spans that the collector does not accept. */
const PACED_MS = 60_000

/**
 * Creates spans of requests and sends them by OTLP over HTTP. This module loads OpenTelemetry's packages, which take time and memory, so it
 * is imported only if tracing is enabled. The packages read `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_EXPORTER_OTLP_HEADERS`,
 * `…_TIMEOUT`, `…_COMPRESSION` and `…_CERTIFICATE` from the environment themselves.
 */
export function createTracing(options: TracingOptions): Tracing {
  const { url, sampler, samplerArg, delayMs, version, log } = options
  const logFailure = paceLines<Error | undefined>(PACED_MS, (spans, error) =>
    log.warn(
      { spans, reason: error && errorText(error) },
      'span export failed (OTEL_EXPORTER_OTLP_ENDPOINT)',
    ),
  )
  const exporter = new OTLPTraceExporter({ url })
  const queue = createSpanQueue(exporter, delayMs, logFailure)
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'sluice', 'service.version': version }))
      .merge(detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] })),
    sampler: createSampler(sampler, samplerArg),
    spanProcessors: [queue],
  })
  const spanOptions: SpanOptions = { ...options, tracer: provider.getTracer('sluice', version) }
  return {
    begin: (request) => new RequestSpans(spanOptions, request),
    readUse: () => queue.readUse(),
    close: () =>
      within(FLUSH_MS, provider.shutdown()).catch((error: unknown) =>
        log.warn({ reason: String(error) }, 'spans lost at shutdown'),
      ),
  }
}

function createSampler(name: SamplerName, ratio: number): Sampler {
  switch (name) {
    case 'always_on':
      return new AlwaysOnSampler()
    case 'always_off':
      return new AlwaysOffSampler()
    case 'traceidratio':
      return new TraceIdRatioBasedSampler(ratio)
    case 'parentbased_always_on':
      return new ParentBasedSampler({ root: new AlwaysOnSampler() })
    case 'parentbased_always_off':
      return new ParentBasedSampler({ root: new AlwaysOffSampler() })
    case 'parentbased_traceidratio':
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) })
  }
}
