import { expect, test } from 'vitest'
import type { Policy } from '../../../../../proxy/policy.ts'
import { createMemoryLimiter } from '../../../../../proxy/limits/store/memory/limiter.ts'
import { seededRandom } from '../../../../support/random/seeded-random.ts'
import { testSeed } from '../../../../support/random/seed.ts'
import { chargeAll, makePolicy } from '../../../../support/limiter/limiters.ts'

/*
 * The room for counters is shared by all rules. Under a rule that counts by a header a client can make up any number of keys. If it
 * could evict counters of another rule with them, then those of its own sign-ins too: with each, its limit would begin anew.
 */

const MAX_KEYS = 600
const MINUTE_MS = 60_000
const random = seededRandom(testSeed())

function draw(from: number, to: number): number {
  return from + Math.floor(random() * (to - from))
}

test.each(['fixed', 'sliding', 'token-bucket'] as const)(
  'keys that are made up under one rule evict no counter of another that has fewer, %s',
  (algorithm) => {
    for (let round = 0; round < 8; round++) {
      let nowMs = 100
      const limiter = createMemoryLimiter({ maxKeys: MAX_KEYS, seed: 42, now: () => nowMs })
      const ask = (policy: Policy, client: string): string =>
        limiter.decide(chargeAll(client, [policy])).outcome
      const login = makePolicy('login', 5, draw(2, 30) * MINUTE_MS, { algorithm })
      const flooded = Array.from({ length: draw(1, 4) }, (_, i) =>
        makePolicy(`flooded ${i}`, draw(1, 100), draw(1, 60) * MINUTE_MS, { algorithm }),
      )
      const clients = Array.from({ length: draw(1, 50) }, (_, i) => `ip:${i}`)
      for (const client of clients) for (let sent = 0; sent < 5; sent++) ask(login, client)
      for (let sent = 0; sent < 3 * MAX_KEYS; sent++) {
        const policy = flooded[draw(0, flooded.length)]
        if (policy) ask(policy, `key:${sent}`)
        nowMs += 0.01
      }
      expect(clients.map((client) => ask(login, client))).toEqual(clients.map(() => 'refused'))
    }
  },
)

test('keys that are made up under one of hundreds of rules evict no counter of the others', () => {
  let nowMs = 100
  const limiter = createMemoryLimiter({ maxKeys: MAX_KEYS, seed: 42, now: () => nowMs })
  const flooded = makePolicy('flooded', 5, 60 * MINUTE_MS)
  const others = Array.from({ length: 200 }, (_, i) => makePolicy(`other ${i}`, 1, draw(2, 30) * MINUTE_MS))
  for (let sent = 0; sent < 3 * MAX_KEYS; sent++) {
    const other = others[sent]
    if (other) limiter.decide(chargeAll('ip', [other]))
    limiter.decide(chargeAll(`key:${sent}`, [flooded]))
    nowMs += 0.01
  }
  const outcomes = others.map((other) => limiter.decide(chargeAll('ip', [other])).outcome)
  expect(new Set(outcomes)).toEqual(new Set(['refused']))
})
