import { chargeAll, makePolicy } from './charges.ts'
import { countAllowed, decideAtOnce } from './decisions.ts'
import { startRedisLimiter, waitUntilAnswering } from './limiters.ts'

/*
 * One replica's limiter in a process of its own, without the rest of a gateway. Asks 300 times at once for each of ten clients, under a
 * fixed and under a sliding window, and prints as JSON how many requests were allowed. The argument is the URL of Redis.
 */

const limiter = startRedisLimiter(process.argv[2] ?? '', 10_000)
await waitUntilAnswering(limiter)
const asked = (['fixed', 'sliding'] as const).map(async (algorithm) => {
  const policy = makePolicy('shared', 137, 60_000, { algorithm })
  const clients = Array.from({ length: 10 }, (_, i) => `ip:192.0.2.${i}`)
  const answers = clients.map((client) => decideAtOnce([limiter], 300, chargeAll(client, [policy])))
  return (await Promise.all(answers)).map(countAllowed)
})
console.log(JSON.stringify(await Promise.all(asked)))
limiter.close()
