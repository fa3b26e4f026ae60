import { expect, test } from 'vitest'
import type { Charge } from '../../proxy/limits/limiter.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { makePolicy } from '../support/limiter/charges.ts'
import { createModelCounters, type Window } from '../support/leases/model-counters.ts'
import { ModelGateway, unitsOf } from '../support/leases/model-gateway.ts'
import { createVirtualTime } from '../support/leases/virtual-time.ts'
import { testSeed } from '../support/random/seed.ts'

/*
 * One key with 100,000 requests allowed a second, 8 gateways, and a network delay of up to 3 ms each way: the real lease code, with
 * counters that know the exact counts.
 */

const GATEWAYS = 8
const QUOTA = 100_000
const SECONDS = 3

type Hot = {
  readonly windows: readonly Window[]
  readonly decisions: number
  readonly commands: number
  readonly refused: ReadonlyMap<Window, number>
}

/** @param shares of the requests, by gateway */
async function playHotKey(perSecond: number, shares: readonly number[]): Promise<Hot> {
  const random = seededRandom(testSeed())
  const time = createVirtualTime()
  const counters = createModelCounters(time.now, { keepsLeased: true })
  const gateways = shares.map(() => new ModelGateway(time, random, counters, (store) => store))
  const policy = makePolicy('hot', QUOTA, 1000, { lease: 'auto', partition: [{ kind: 'global' }] })
  const refused = new Map<Window, number>()
  let decisions = 0
  const watch = {
    admitted(charge: Charge, window: Window | undefined) {
      if (!window) throw new Error('admitted without a window')
      window.admitted += unitsOf(charge)
    },
    refused(charge: Charge) {
      const window = counters.windowOf(charge)
      if (window) refused.set(window, (refused.get(window) ?? 0) + 1)
    },
  }
  const sendOn = (gateway: ModelGateway, perMs: number): void => {
    if (time.now() >= SECONDS * 1000) return
    // Twice the mean, none, and all numbers in between are equally likely.
    for (let left = 2 * perMs * random(); left > random(); left--) {
      decisions += 1
      gateway.decide([{ policy, partitionKey: 'global' }], watch)
    }
    time.at(time.now() + 1, () => sendOn(gateway, perMs))
  }
  const all = shares.reduce((sum, share) => sum + share, 0)
  for (const [at, gateway] of gateways.entries())
    sendOn(gateway, ((perSecond / 1000) * (shares[at] ?? 0)) / all)
  await time.runUntil(SECONDS * 1000 + 200)
  const commands = gateways.reduce((sum, gateway) => sum + gateway.commands, 0)
  return { windows: counters.windows, decisions, commands, refused }
}

test.for([
  ['evenly', 130_000, [1, 1, 1, 1, 1, 1, 1, 1]],
  ['unevenly', 130_000, [1, 1, 2, 4, 8, 16, 32, 64]],
  ['hardly more than are allowed', 101_000, [1, 1, 1, 1, 1, 1, 1, 1]],
] as const)('requests that come %s', { timeout: 120_000 }, async ([, perSecond, shares]) => {
  expect(shares).toHaveLength(GATEWAYS)
  const { windows, decisions, commands, refused } = await playHotKey(perSecond, shares)
  for (const { admitted, counted } of windows) {
    expect(admitted).toBeLessThanOrEqual(QUOTA)
    expect(counted).toBeLessThanOrEqual(QUOTA)
  }
  const whole = windows.slice(0, SECONDS - 1)
  const early = whole.map((window) => Math.min(refused.get(window) ?? 0, QUOTA - window.admitted))
  expect(Math.max(...early)).toBeLessThanOrEqual(QUOTA * 0.02)
  expect(commands / decisions).toBeLessThan(0.02)
})
