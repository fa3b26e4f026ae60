import { MemoryLimiter } from '../../../proxy/limits/store/memory/limiter.ts'
import { chargeAll, makePolicy } from './charges.ts'
import { readTable } from './limiters.ts'

/*
 * Times the decisions of a hundred regular clients while more and more new clients arrive: once with room for the new clients, and once
 * when each of them evicts another. A process of its own, so that nothing else is compiled or collected. The two cases take turns, so that
 * other load on the machine affects both. Prints one JSON object with the 99th percentiles in microseconds, each the median of its turns.
 */

const room = 1_000_000
const others = 300_000
const turns = 30
/** A regular client asks after each of these many new clients. */
const usualEvery = 10
const login = [makePolicy('login', 30, 900_000)]
const usual = [makePolicy('usual', 1_000_000, 900_000)]
const usualCharges = Array.from({ length: 100 }, (_, i) => chargeAll(`10.0.0.${i}`, usual))
let nowMs = 0

/** Returns the 99th percentile of a regular client's decision times while new clients arrive. */
function timeUsual(limiter: MemoryLimiter, from: number, count: number): number {
  const tookMs: number[] = []
  for (let i = from; i < from + count; i++) {
    nowMs += 0.01
    limiter.decide(chargeAll(`198.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, login))
    const charges = i % usualEvery === 0 && usualCharges[(i / usualEvery) % usualCharges.length]
    if (!charges) continue
    const beganMs = performance.now()
    limiter.decide(charges)
    tookMs.push(performance.now() - beganMs)
  }
  return 1000 * (tookMs.sort((a, b) => a - b)[Math.floor(0.99 * tookMs.length)] ?? NaN)
}

function median(numbers: number[]): number {
  return numbers.sort((a, b) => a - b)[numbers.length >> 1] ?? NaN
}

const makeLimiter = (): MemoryLimiter => new MemoryLimiter({ maxKeys: room, seed: 20_261, now: () => nowMs })
const roomy = makeLimiter()
const full = makeLimiter()
timeUsual(roomy, 0, room - others)
timeUsual(full, 0, room - usualCharges.length)

const inTurn = others / turns
const p99sUs: number[] = []
const p99sFloodedUs: number[] = []
for (let turn = 0; turn < turns; turn++) {
  p99sUs.push(timeUsual(roomy, room - others + turn * inTurn, inTurn - usualCharges.length))
  p99sFloodedUs.push(timeUsual(full, room + turn * inTurn, inTurn))
}
console.log(
  JSON.stringify({
    p99Us: median(p99sUs),
    p99FloodedUs: median(p99sFloodedUs),
    evictions: readTable(full).evictions - readTable(roomy).evictions,
  }),
)
