import { MemoryLimiter } from '../../../proxy/limits/store/memory/limiter.ts'
import { collectGarbage } from '../../../shared/v8-gc.ts'
import { chargeAll, makePolicy } from './charges.ts'
import { readTable } from './limiters.ts'

/*
 * Fills embedded counters with a million addresses, and then asks for another 30 % of new ones. A process of its own, so that only the
 * counters account for its resident memory. Prints one JSON object. Arguments: the algorithm, `fixed` unless given; how often each address
 * asks; and the number of addresses.
 */

const algorithm = process.argv[2] === 'sliding' ? 'sliding' : 'fixed'
const times = Number(process.argv[3] ?? 1)
const clients = Number(process.argv[4] ?? 1_000_000)
const others = 0.3 * clients
const policies = [makePolicy('login', 30, 900_000, { algorithm })]
let nowMs = 0
const limiter = new MemoryLimiter({ maxKeys: clients, seed: 20_261, now: () => nowMs })

function ask(from: number, to: number): void {
  for (let i = from; i < to; i++) {
    nowMs += 0.01
    // A slice of a longer string, like an address in a header field: it must not keep the whole string alive.
    const field = `${'for=unknown, '.repeat(4)}198.${i >> 16}.${(i >> 8) & 255}.${i & 255}`
    const charges = chargeAll(field.slice(52), policies)
    for (let asked = 0; asked < times; asked++) limiter.decide(charges)
  }
}

/** Collects garbage first: how much the requests leave depends on when the collector runs. */
function readResidentBytes(): number {
  collectGarbage()
  return process.memoryUsage.rss()
}

for (let i = 0; i < 300_000; i++) limiter.decide(chargeAll('warm-up', policies))
const before = readResidentBytes()
ask(0, clients)
const filled = readResidentBytes()
const readUse = (): object =>
  algorithm === 'fixed'
    ? readTable(limiter)
    : { clients: readTable(limiter, 'sliding'), times: readTable(limiter, 'sliding-times') }
const atFilled = readUse()
ask(clients, clients + others)
const flooded = readResidentBytes()

console.log(
  JSON.stringify({
    bytesPerCounter: (filled - before) / clients,
    moreBytesAfter: flooded - filled,
    atFilled,
    atFlooded: readUse(),
  }),
)
