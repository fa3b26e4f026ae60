import { parentPort, workerData } from 'node:worker_threads'

/*
 * A thread that announces the arrival of requests at random: a Poisson process, like that of many independent clients. Each message is the
 * number of requests that arrive at that moment. It sleeps in between, which leaves a core to the measured processes.
 */

const { ratePerSecond, seconds } = workerData as { ratePerSecond: number; seconds: number }
const asleep = new Int32Array(new SharedArrayBuffer(4))
const startMs = performance.now()
const endMs = startMs + seconds * 1000
const gapMs = (): number => (-Math.log(1 - Math.random()) * 1000) / ratePerSecond

for (let nextMs = startMs + gapMs(); nextMs < endMs;) {
  Atomics.wait(asleep, 0, 0, Math.max(0, nextMs - performance.now()))
  let due = 0
  for (const nowMs = performance.now(); nextMs <= nowMs && nextMs < endMs; nextMs += gapMs()) due += 1
  if (due > 0) parentPort?.postMessage(due)
}
parentPort?.postMessage(0)
