import { parentPort, workerData } from 'node:worker_threads'

// A thread that announces when each request is due, evenly spaced. Node's timers have a resolution of a millisecond, which would group
// requests into bursts: the second request of a burst waits for the first, and the server is charged for a queue that the generator has
// made. This thread sleeps to within about 0.1 ms, and its message wakes up the sending thread.

const { intervalMs, total } = workerData as { readonly intervalMs: number; readonly total: number }
const never = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
const startMs = performance.now()

for (let due = 0; due < total; due++) {
  const plannedMs = startMs + due * intervalMs
  const waitMs = plannedMs - performance.now()
  if (waitMs > 0) Atomics.wait(never, 0, 0, waitMs)
  // Each thread has its own time origin.
  parentPort?.postMessage(performance.timeOrigin + plannedMs)
}
