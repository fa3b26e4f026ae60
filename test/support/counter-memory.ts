import { createMemoryLimiter } from '../../proxy/limiter/memory-limiter.ts'
import { chargeAll, makePolicy } from './limiters.ts'

/*
 * Fills embedded counters with a million addresses and then asks for 300,000 others, in a process of its own so that
 * its resident memory is theirs. Prints one JSON object.
 */

const clients = 1_000_000
const policies = [makePolicy('login', 30, 900_000)]
let nowMs = 0
const limiter = createMemoryLimiter({ maxKeys: clients, seed: 20_261, now: () => nowMs })

function ask(from: number, to: number): void {
  for (let i = from; i < to; i++) {
    nowMs += 0.01
    // A part of a longer string, as an address in a header field is: it must not keep the whole alive.
    const field = `${'for=unknown, '.repeat(4)}198.${i >> 16}.${(i >> 8) & 255}.${i & 255}`
    limiter.decide(chargeAll(field.slice(52), policies))
  }
}

for (let i = 0; i < 300_000; i++) limiter.decide(chargeAll('warm-up', policies))
const before = process.memoryUsage.rss()
ask(0, clients)
const filled = process.memoryUsage.rss()
const atFilled = limiter.readUse()
ask(clients, clients + 300_000)
const flooded = process.memoryUsage.rss()

console.log(
  JSON.stringify({
    bytesPerCounter: (filled - before) / clients,
    moreBytesAfter: flooded - filled,
    atFilled,
    atFlooded: limiter.readUse(),
  }),
)
