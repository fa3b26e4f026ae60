import { parentPort, workerData } from 'node:worker_threads'

// A thread that says when each request is due, evenly spaced. Timers of Node have a grain of a millisecond, which would
// make bursts of the requests due by then: the second of a burst waits for the first, and a server is charged for a queue that
// the generator has made. This thread sleeps to within some 0.1 ms, and the one that sends is woken by its message.

const { intervalMs, total } = workerData as { readonly intervalMs: number; readonly total: number }
const never = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
const startMs = performance.now()

for (let due = 0; due < total; due++) {
  const plannedMs = startMs + due * intervalMs
  const waitMs = plannedMs - performance.now()
  if (waitMs > 0) Atomics.wait(never, 0, 0, waitMs)
  // Threads count from origins of their own.
  parentPort?.postMessage(performance.timeOrigin + plannedMs)
}
