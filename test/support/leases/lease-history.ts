import type { Charge } from '../../../proxy/limits/limiter.ts'
import { MAX_LEASE_AGE_MS, type LeaseStore } from '../../../proxy/limits/store/leases/lease-store.ts'
import type { Policy } from '../../../proxy/policy.ts'
import { seededRandom } from '../random/seeded-random.ts'
import { makePolicy } from '../limiter/charges.ts'
import { createModelCounters, type Window } from './model-counters.ts'
import { LATENCY_MS, ModelGateway, unitsOf, type Defect } from './model-gateway.ts'
import { createVirtualTime } from './virtual-time.ts'

const GATEWAYS = 3
const LASTS_MS = 2000
const CLIENTS = ['one', 'two']

/** The share of histories in which nothing goes wrong, so that leases must be returned in time. */
const CALM_SHARE = 0.3

export type LeaseHistory = {
  readonly violations: readonly string[]
  readonly requests: number
  /** The number of requests that were decided without the shared counters. */
  readonly decidedHere: number
}

/**
 * Plays a history drawn from the seed, on a virtual clock. Gateways decide requests of a few clients under rules with and without `lease`,
 * while connections stall and break, gateways crash, pause and reload other quotas, and clients are reset. Model counters, which know the
 * true counts, find violations:
 *
 * - more units are admitted in a window than its quota, or than it has counted
 * - although nothing has gone wrong, units are out on lease for more than a second, or cause a refusal after that time
 *
 * @param options.defect changes the lease stores of all gateways
 * @param options.keepsLeased false for resets that wrongly forget leases
 */
export async function playLeaseHistory(
  seed: number,
  options: { readonly defect?: Defect; readonly keepsLeased?: boolean } = {},
): Promise<LeaseHistory> {
  const { defect = (store: LeaseStore): LeaseStore => store, keepsLeased = true } = options
  const random = seededRandom(seed)
  const time = createVirtualTime()
  const counters = createModelCounters(time.now, { keepsLeased })
  const gateways = Array.from({ length: GATEWAYS }, () => new ModelGateway(time, random, counters, defect))
  const violations: string[] = []
  const isCalm = random() < CALM_SHARE
  let policies = drawPolicies(random)
  let requests = 0
  let decidedHere = 0

  function admit(charge: Charge, window: Window | undefined): void {
    if (!window) {
      violations.push(`${charge.policy.name} has admitted what no window has counted`)
      return
    }
    window.admitted += unitsOf(charge)
    if (window.admitted > window.quota)
      violations.push(`${window.admitted} of ${window.quota} admitted under ${window.name}`)
    if (window.admitted > window.counted)
      violations.push(`${window.admitted} admitted and ${window.counted} counted under ${window.name}`)
  }

  /** Checks the reason of a refusal: units that were leased more than a second ago must not cause one. */
  function refused(charge: Charge): void {
    const window = counters.windowOf(charge)
    if (!window || !isCalm || time.now() - window.beganAtMs < 2 * LATENCY_MS) return
    const taken =
      window.admitted + window.unanswered + counters.leasedSince(window, time.now() - MAX_LEASE_AGE_MS)
    if (taken + unitsOf(charge) <= charge.policy.quota)
      violations.push(`refused after ${taken} of ${charge.policy.quota} under ${window.name}`)
  }

  function send(gateway: ModelGateway): void {
    const partitionKey = pick(random, CLIENTS)
    const chosen = random() < 0.7 ? [pick(random, policies)] : policies.filter(() => random() < 0.5)
    const charges = chosen.map((policy): Charge => ({ policy, partitionKey, units: random() < 0.9 ? 1 : 3 }))
    if (charges.length === 0) return
    requests += 1
    if (gateway.decide(charges, { admitted: admit, refused })) decidedHere += 1
  }

  function sendOn(gateway: ModelGateway, perMs: number): void {
    if (time.now() >= LASTS_MS) return
    if (!gateway.isPaused) for (let left = perMs; left > random(); left--) send(gateway)
    const next = random() < 0.01 ? drawRate(random) : perMs
    time.at(time.now() + 1, () => sendOn(gateway, next))
  }

  /** Reloads a table in which other rules have changed. */
  function reload(): void {
    if (time.now() >= LASTS_MS) return
    for (const each of gateways) each.giveBackAll()
    time.at(time.now() + random() * 500, reload)
  }

  function disturb(): void {
    if (time.now() >= LASTS_MS) return
    const gateway = pick(random, gateways)
    const untilMs = time.now() + random() * random() * 800
    pick(random, [
      () => gateway.break('lost before', untilMs),
      () => gateway.break('lost after', untilMs),
      () => gateway.break('stale', untilMs),
      () => gateway.crash(),
      () => gateway.pause(untilMs),
      () => counters.reset({ policy: pick(random, policies), partitionKey: pick(random, CLIENTS) }),
      () => {
        policies = policies.map((policy) => ({ ...policy, quota: drawQuota(random) }))
        for (const each of gateways) each.giveBackAll()
      },
    ])()
    time.at(time.now() + 30 + random() * 400, disturb)
  }

  function watchAge(): void {
    for (const window of counters.windows) {
      const out = window.counted - window.admitted - window.unanswered
      const lately = counters.leasedSince(window, time.now() - MAX_LEASE_AGE_MS)
      if (window.endsAtMs > time.now() && out > lately)
        violations.push(`${out} units of ${window.name} are out on lease, but ${lately} since a second`)
    }
    time.at(time.now() + 50, watchAge)
  }

  for (const gateway of gateways) sendOn(gateway, drawRate(random))
  if (isCalm) {
    reload()
    time.at(MAX_LEASE_AGE_MS, watchAge)
  } else disturb()
  await time.runUntil(LASTS_MS + 2 * MAX_LEASE_AGE_MS)
  return { violations, requests, decidedHere }
}

function drawPolicies(random: () => number): readonly Policy[] {
  const calendar = { unit: 'hour' as const }
  return [
    makePolicy('long', drawQuota(random), 60_000, { lease: 'auto' }),
    makePolicy('brief', drawQuota(random), 200 + Math.floor(random() * 800), { lease: 'auto' }),
    makePolicy('calendar', drawQuota(random), 500 + Math.floor(random() * 2000), { lease: 'auto', calendar }),
    makePolicy('many', drawQuota(random), 60_000, { lease: 2 + Math.floor(random() * 50) }),
    makePolicy('none', drawQuota(random), 2000),
  ]
}

function drawQuota(random: () => number): number {
  return 50 + Math.floor(random() * random() * 5000)
}

/** Requests in a millisecond. */
function drawRate(random: () => number): number {
  return random() < 0.3 ? 0 : random() * 2
}

function pick<Item>(random: () => number, items: readonly Item[]): Item {
  const item = items[Math.floor(random() * items.length)]
  if (item === undefined) throw new RangeError('nothing to pick from')
  return item
}
