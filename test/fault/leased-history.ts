import { setTimeout as sleep } from 'node:timers/promises'
import type { Policy } from '../../proxy/policy.ts'
import { doAtOnce } from '../../shared/steps.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { startRedisLimiter } from '../support/limiter/limiters.ts'
import { drawFaults, runFaults, tellFaults } from './faults.ts'
import type { Attempt } from './history.ts'
import type { Verdict } from './random-history.ts'
import { openStage, type Replica, type Stage } from './stage.ts'

const REPLICAS = 2
const CLIENTS = 2
const TROUBLED_MS = 600
const BURST = 12

/** Longer than any history, so that the whole history is in one window. */
const LONG_MS = 120_000

/** A gateway's limiter that can crash and be replaced by another. */
export type LeasingReplica = Replica & {
  crash(): void
  reload(policies: readonly Policy[]): void
  reset(client: string, policies: readonly Policy[]): Promise<void>
  /** Deletes counters, as a reset by a program that knows nothing of leases does. */
  deleteCounters(client: string, policies: readonly Policy[]): Promise<void>
}

export function startLeasingReplica(url: string): LeasingReplica {
  let limiter = startRedisLimiter(url, 100)
  return {
    decide: (charges) => limiter.decide(charges),
    settle: (...settlement) => limiter.settle(...settlement),
    storeState: () => limiter.storeState(),
    close: () => limiter.close(),
    crash() {
      // The connection closes first, so that nothing is given back.
      limiter.connection.close()
      limiter.close()
      limiter = startRedisLimiter(url, 100)
    },
    reload: (policies) => doAtOnce(limiter.useTable(policies)),
    async reset(client, policies) {
      await limiter.reset(chargeAll(client, policies))
    },
    async deleteCounters(client, policies) {
      const keys = policies.map(({ name, windowMs }) => `sluice:1:{${client}}:${name}:${windowMs}`)
      await limiter.connection.client.del(keys).catch(() => 0)
    },
  }
}

/**
 * Plays the history of a seed: clients send requests to two gateways under rules with `lease` while the network and Redis fail, gateways
 * crash and reload, and one client is reset. At the end each client asks until nothing is left.
 */
export async function playLeasedHistory(
  seed: number,
  makeReplica: (url: string) => LeasingReplica = startLeasingReplica,
): Promise<Verdict> {
  const random = seededRandom(seed)
  const faults = random() < 0.7 ? drawFaults(random, REPLICAS, TROUBLED_MS) : []
  const policies = drawPolicies(random)
  const clients = Array.from({ length: CLIENTS }, newClient)
  const [resetClient] = clients
  const replicas: LeasingReplica[] = []
  const stage = await openStage((url) => {
    const replica = makeReplica(url)
    replicas.push(replica)
    return replica
  }, REPLICAS)
  const resets: number[] = []
  const disturb = async (): Promise<void> => {
    for (const replica of replicas) {
      await sleep((random() * TROUBLED_MS) / 2)
      const event = random()
      if (event < 0.3) {
        const over = stage.trouble([replicas.indexOf(replica)])
        replica.crash()
        over()
      } else if (event < 0.5) replica.reload(policies)
      else if (event < 0.7 && resetClient !== undefined) {
        await replica.reset(resetClient, policies)
        resets.push(performance.now())
      }
    }
  }
  try {
    await stage.settled()
    const traffic = clients.flatMap((client) =>
      replicas.map((_, replica) => sendRequests(stage, replica, client, policies, random)),
    )
    await Promise.all([...traffic, runFaults(stage, faults), disturb()])
    await stage.settled()
    for (const client of clients) for (const policy of policies) await useUp(stage, client, policy)
    const violations: string[] = []
    for (const client of clients)
      for (const policy of policies) {
        const own = client === resetClient ? resets : []
        for (const violation of await judge(stage, client, policy, own))
          violations.push(`${client} under ${policy.name} (${policy.quota}): ${violation}`)
      }
    return { seed, faults, violations }
  } finally {
    await stage.close()
  }
}

function drawPolicies(random: () => number): readonly Policy[] {
  const quota = (): number => 100 + Math.floor(random() * 600)
  const closed = { onStoreError: 'closed' as const }
  return [
    makePolicy('auto', quota(), LONG_MS, { ...closed, lease: 'auto' }),
    makePolicy('many', quota(), LONG_MS, { ...closed, lease: 10 + Math.floor(random() * 50) }),
    makePolicy('none', quota(), LONG_MS, closed),
  ]
}

async function sendRequests(
  stage: Stage,
  replica: number,
  client: string,
  policies: readonly Policy[],
  random: () => number,
): Promise<void> {
  const asked: Promise<unknown>[] = []
  const untilMs = performance.now() + TROUBLED_MS
  while (performance.now() < untilMs) {
    const single = policies[Math.floor(random() * policies.length)]
    const chosen = random() < 0.3 || !single ? policies : [single]
    const burst = Math.floor(random() * BURST)
    for (let sent = 0; sent < burst; sent++) asked.push(stage.ask(replica, client, chosen))
    await sleep(random() * 15)
  }
  await Promise.all(asked)
}

/** Asks until nothing is left, including the units that were out on lease. */
async function useUp(stage: Stage, client: string, policy: Policy): Promise<void> {
  let refusedSinceMs = Infinity
  for (let asked = 0; asked < 3 * policy.quota; asked++) {
    const decision = await stage.ask(asked % REPLICAS, client, [policy])
    if (decision.outcome === 'allowed') refusedSinceMs = Infinity
    else refusedSinceMs = Math.min(refusedSinceMs, performance.now())
    if (performance.now() - refusedSinceMs > 50) return
    if (decision.outcome !== 'allowed') await sleep(10)
  }
}

/** @param resets when the client was reset */
async function judge(
  stage: Stage,
  client: string,
  policy: Policy,
  resets: readonly number[],
): Promise<string[]> {
  const { attempts, losses, counted = 0 } = await stage.historyOf(client, policy, true)
  const isAllowed = ({ outcome }: Attempt): boolean => outcome === 'allowed'
  const allowed = attempts.filter(isAllowed)
  const sinceMs = Math.max(-Infinity, ...resets)
  const since = allowed.filter(({ sentMs }) => sentMs >= sinceMs)
  const begun = 1 + losses.length + resets.length
  const violations: string[] = []
  if (allowed.length > begun * policy.quota)
    violations.push(`${allowed.length} allowed, where at most ${begun * policy.quota} may be`)
  if (losses.length > 0) return violations
  if (since.length > policy.quota) violations.push(`${since.length} allowed since a reset`)
  if (counted < since.length) violations.push(`${counted} counted, but ${since.length} allowed`)
  if (counted > policy.quota) violations.push(`${counted} counted`)
  return violations
}

/** The text for a failed test: the command to replay, and the observations. */
export function tellLeased({ seed, faults, violations }: Verdict): string {
  return [`TEST_SEED=${seed} FAULT_HISTORIES=1 replays: ${tellFaults(faults)}`, ...violations].join('\n  ')
}
