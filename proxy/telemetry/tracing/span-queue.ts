import { ExportResultCode, type ExportResult } from '@opentelemetry/core'
import {
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace'
import type { TableUse } from '../telemetry.ts'

/** Spans that wait for the collector: a few megabytes. The default of OpenTelemetry. */
const CAPACITY = 2_048

/**
 * Sends spans in batches, one after the other, and drops those that exceed the buffer while the collector is slow or unavailable.
 * The queue is OpenTelemetry's own; this keeps it from getting full without anybody knowing.
 *
 * @param delayMs how long spans are buffered if they are fewer than a batch
 * @param onFailure called for each batch that the collector did not take, after all attempts
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
