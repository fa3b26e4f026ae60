import { ROOT_CONTEXT } from '@opentelemetry/api'
import { ExportResultCode, type ExportResult } from '@opentelemetry/core'
import { TracerProvider, type ReadableSpan } from '@opentelemetry/sdk-trace'
import { expect, onTestFinished, test } from 'vitest'
import { createSpanQueue } from '../../../proxy/telemetry/tracing/span-queue.ts'

function record(onFailure: (spans: number) => void = () => undefined) {
  const batches: { readonly spans: ReadableSpan[]; readonly done: (result: ExportResult) => void }[] = []
  let isOver = false
  const queue = createSpanQueue(
    {
      export(spans, done) {
        if (isOver) done({ code: ExportResultCode.SUCCESS })
        else batches.push({ spans, done })
      },
      shutdown: () => Promise.resolve(),
    },
    60_000,
    (_, spans) => onFailure(spans),
  )
  const tracer = new TracerProvider({ spanProcessors: [queue] }).getTracer('test')
  const end = (count: number): void => {
    for (let i = 0; i < count; i++) tracer.startSpan('span', {}, ROOT_CONTEXT).end()
  }
  onTestFinished(async () => {
    isOver = true
    for (const { done } of batches) done({ code: ExportResultCode.SUCCESS })
    await queue.shutdown()
  })
  return { queue, batches, end }
}

test('spans that exceed the backlog of a slow collector are dropped and counted', () => {
  const { queue, batches, end } = record()
  end(10_000)
  const [first] = batches
  expect(batches).toHaveLength(1)
  const { size, capacity, evictions } = queue.readUse()
  expect(size).toBe(capacity)
  expect(evictions).toBe(10_000 - capacity - (first?.spans.length ?? 0))
})

test('when the collector answers, the next spans are sent, and there is room again', async () => {
  const failures: number[] = []
  const { queue, batches, end } = record((spans) => failures.push(spans))
  end(10_000)
  for (let sent = 0; sent < batches.length; sent++) {
    batches[sent]?.done({ code: sent === 0 ? ExportResultCode.FAILED : ExportResultCode.SUCCESS })
    await new Promise(setImmediate)
  }
  expect(queue.readUse().size).toBe(0)
  expect(batches.reduce((sum, { spans }) => sum + spans.length, 0)).toBe(10_000 - queue.readUse().evictions)
  expect(failures).toEqual([batches[0]?.spans.length])
})
