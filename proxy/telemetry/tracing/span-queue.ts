import { ExportResultCode, type ExportResult } from '@opentelemetry/core'
import {
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace'
import type { TableUse } from '../telemetry.ts'

/** Maximum number of spans waiting for the collector: a few megabytes. OpenTelemetry's default. */
const CAPACITY = 2_048

/**
 * Sends spans in batches, one after the other, and drops spans that exceed the buffer while the collector is slow or unavailable. The queue
 * is OpenTelemetry's own; this wrapper counts the dropped spans.
 *
 * @param delayMs how long spans are buffered if there are fewer than a batch
 * @param onFailure called for each batch that the collector did not accept, after all attempts
 */
export function createSpanQueue(
  exporter: SpanExporter,
  delayMs: number,
  onFailure: (error: Error | undefined, spans: number) => void,
): SpanProcessor & { readUse(): TableUse } {
  let size = 0
  let evictions = 0
  const watched: SpanExporter = {
    export(spans: ReadableSpan[], done: (result: ExportResult) => void) {
      size -= spans.length
      exporter.export(spans, (result) => {
        if (result.code !== ExportResultCode.SUCCESS) onFailure(result.error, spans.length)
        done(result)
      })
    },
    shutdown: () => exporter.shutdown(),
  }
  const queue = new BatchSpanProcessor({
    exporter: watched,
    maxQueueSize: CAPACITY,
    scheduledDelayMillis: delayMs,
  })
  return {
    onStart: () => undefined,
    onEnd(span) {
      if (size === CAPACITY) {
        evictions += 1
        return
      }
      size += 1
      queue.onEnd(span)
    },
    forceFlush: () => queue.forceFlush(),
    shutdown: () => queue.shutdown(),
    readUse: () => ({ size, capacity: CAPACITY, evictions }),
  }
}
