import cluster from 'node:cluster'
import { createEmbeddedLimiter, createWorkerLimiter } from '../../../proxy/limits/store/create-limiter.ts'
import { ServedLimiter } from '../../../proxy/limits/store/workers/primary-limiter.ts'
import { chargeAll, makePolicy } from './charges.ts'
import { countAllowed, decideAtOnce } from './decisions.ts'
import { limiterOptions } from './limiters.ts'

/*
 * A primary process with embedded counters and workers that ask it, without the rest of a gateway. Each worker asks
 * 500 times at once for one client and prints how many were allowed. The argument is the number of workers.
 */

const policies = [makePolicy('login', 137, 60_000)]
const workerCount = Number(process.argv[2] ?? 2)

if (cluster.isPrimary) {
  const embedded = createEmbeddedLimiter(limiterOptions())
  for (let i = 0; i < workerCount; i++) {
    const worker = cluster.fork()
    new ServedLimiter({
      counters: embedded,
      policies,
      port: { send: (message) => worker.send(message), listen: (receive) => worker.on('message', receive) },
    })
  }
  // The primary must end with its workers, so nothing of its own may keep it alive.
} else {
  const limiter = createWorkerLimiter(
    { send: (message) => process.send?.(message), listen: (receive) => process.on('message', receive) },
    limiterOptions({ storeTimeoutMs: 5000 }),
  )
  const decisions = await decideAtOnce([limiter], 500, chargeAll('ip:192.0.2.1', policies))
  console.log(`allowed ${countAllowed(decisions)} of ${decisions.length}`)
  cluster.worker?.disconnect()
}
