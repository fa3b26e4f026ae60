import { createMemoryLimiter } from '../../proxy/limiter/memory-limiter.ts'
import { chargeAll, makePolicy } from './limiters.ts'

/*
 * Times the decisions of a hundred clients that go on asking while ever more others come: as long as there is room for
 * these, and when each of them drives another out. In a process of its own, so that nothing else is being compiled or
 * collected. Prints one JSON object with the 99th percentiles in microseconds.
 */

const room = 1_000_000
const others = 300_000
/** One of the usual clients asks after so many of the others. */
const usualEvery = 10
const login = [makePolicy('login', 30, 900_000)]
const usual = [makePolicy('usual', 1_000_000, 900_000)]
const usualCharges = Array.from({ length: 100 }, (_, i) => chargeAll(`10.0.0.${i}`, usual))
let nowMs = 0
const limiter = createMemoryLimiter({ maxKeys: room, seed: 20_261, now: () => nowMs })

function timeUsual(from: number, to: number): number {
  const tookMs: number[] = []
  for (let i = from; i < to; i++) {
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

timeUsual(0, room - others)
const p99Us = timeUsual(room - others, room - usualCharges.length)
const p99FloodedUs = timeUsual(room, room + others)
console.log(JSON.stringify({ p99Us, p99FloodedUs, evictions: limiter.readUse().evictions }))
