import type { LoggedRequest } from './logged-request.ts'
import type { LineReader } from './formats.ts'
import { Heap } from '../heap.ts'
import type { LogFile } from './read-lines.ts'

/** Numbers of lines read, and of lines that could not be parsed. */
export type LineCounts = {
  read: number
  /** Lines of the log that are not requests, such as lines about the start of the server, and empty lines. */
  other: number
  unreadable: number
  /** The first unreadable lines. */
  readonly examples: {
    readonly file: string
    readonly line: number
    readonly why: string
    readonly text: string
  }[]
  readonly formats: Map<string, number>
}

/**
 * How far out of order a request may be to be put in its place, in milliseconds. A log has requests in the order in which they ended. With
 * durations, requests are ordered by their start, so long requests come late. Without durations, only the processes that write the log are
 * out of step.
 */
const OUT_OF_ORDER_MS = { withDuration: 60_000, without: 2_000 }
/** Maximum number of requests held for reordering, for all logs together: some 15 MB. */
const MAX_HELD = 32_768
const MAX_EXAMPLES = 5
const MAX_EXAMPLE_LENGTH = 160

/** Creates the counts before any line is read. */
export function createLineCounts(): LineCounts {
  return { read: 0, other: 0, unreadable: 0, examples: [], formats: new Map() }
}

/** Yields the requests of several logs, merged by time, in batches. */
export async function* readLogs(
  logs: readonly LogFile[],
  readLine: LineReader,
  counts: LineCounts,
): AsyncGenerator<LoggedRequest[], void> {
  const capacity = Math.max(1024, Math.floor(MAX_HELD / logs.length))
  const sources = logs.map((log) => readLog(log, readLine, counts, capacity))
  const [only] = sources
  if (only && sources.length === 1) {
    yield* only
    return
  }
  const heads: {
    readonly source: AsyncGenerator<LoggedRequest[], void>
    batch: LoggedRequest[]
    at: number
  }[] = []
  for (const source of sources) {
    const batch = await nextBatch(source)
    if (batch) heads.push({ source, batch, at: 0 })
  }
  while (heads.length > 0) {
    const merged: LoggedRequest[] = []
    // Merge until a batch of one log is used up.
    let empty: (typeof heads)[number] | undefined
    while (!empty) {
      let [first] = heads
      for (const head of heads) if (first && timeOf(head) < timeOf(first)) first = head
      const request = first?.batch[first.at]
      if (!first || !request) break
      merged.push(request)
      first.at += 1
      if (first.at === first.batch.length) empty = first
    }
    yield merged
    if (!empty) return
    const batch = await nextBatch(empty.source)
    if (batch) Object.assign(empty, { batch, at: 0 })
    else heads.splice(heads.indexOf(empty), 1)
  }
}

function timeOf({ batch, at }: { readonly batch: readonly LoggedRequest[]; readonly at: number }): number {
  return batch[at]?.timeMs ?? Infinity
}

/** Returns the next non-empty batch; undefined at the end. */
async function nextBatch(
  source: AsyncGenerator<LoggedRequest[], void>,
): Promise<LoggedRequest[] | undefined> {
  for (;;) {
    const next: IteratorResult<LoggedRequest[], void> = await source.next()
    if (next.done === true) return undefined
    if (next.value.length > 0) return next.value
  }
}

/** Yields the requests of one log in the order of their times. */
async function* readLog(
  { name, batches }: LogFile,
  readLine: LineReader,
  counts: LineCounts,
  capacity: number,
): AsyncGenerator<LoggedRequest[], void> {
  const held = new Heap<LoggedRequest>()
  let dueMs = -Infinity
  let line = 0
  for await (const lines of batches) {
    for (const text of lines) {
      line += 1
      const read = text === '' ? 'other' : readLine(text.endsWith('\r') ? text.slice(0, -1) : text)
      if (read === 'other') counts.other += 1
      else if ('why' in read) {
        counts.unreadable += 1
        if (counts.examples.length < MAX_EXAMPLES)
          counts.examples.push({ file: name, line, why: read.why, text: text.slice(0, MAX_EXAMPLE_LENGTH) })
      } else {
        counts.read += 1
        const { format } = read.knows
        counts.formats.set(format, (counts.formats.get(format) ?? 0) + 1)
        const span = read.durationMs === undefined ? OUT_OF_ORDER_MS.without : OUT_OF_ORDER_MS.withDuration
        dueMs = Math.max(dueMs, read.timeMs - span)
        held.push(read.timeMs, read)
      }
    }
    yield take(held, (firstMs) => firstMs <= dueMs || held.size > capacity)
  }
  yield take(held, () => true)
}

function take(held: Heap<LoggedRequest>, isDue: (firstMs: number) => boolean): LoggedRequest[] {
  const taken: LoggedRequest[] = []
  while (held.size > 0 && isDue(held.firstMs)) {
    const request = held.pop()
    if (request) taken.push(request)
  }
  return taken
}
