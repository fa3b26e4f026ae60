import { setTimeout as sleep } from 'node:timers/promises'
import type { Policy } from '../../proxy/policy.ts'
import { makePolicy, newClient } from '../support/limiter/charges.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { drawFaults, runFaults, tellFaults, type Fault } from './faults.ts'
import { judge } from './judge.ts'
import { openStage, type Replica, type Stage } from './stage.ts'

const REPLICAS = 2
const CLIENTS = 3
const TROUBLED_MS = 500
const BURST = 4

/** Longer than any history, so that the whole history is in one window. */
const LONG_MS = 120_000

/** The history of a seed, and its violations; empty if the promise was kept. */
export type Verdict = {
  readonly seed: number
  readonly faults: readonly Fault[]
  readonly violations: string[]
}

/**
 * Plays the history of a seed: clients send requests to two replicas at once under rules of each kind, while the network and Redis fail.
 * After that, every client asks until it is refused, and the judge checks everything.
 */
export async function playHistory(
  seed: number,
  makeReplica: (url: string) => Replica,
  draw: (random: () => number) => Fault[] = (random) => drawFaults(random, REPLICAS, TROUBLED_MS),
): Promise<Verdict> {
  const random = seededRandom(seed)
  const faults = draw(random)
  const policies = drawPolicies(random)
  const clients = Array.from({ length: CLIENTS }, newClient)
  const stage = await openStage(makeReplica, REPLICAS)
  try {
    await stage.settled()
    const traffic = clients.flatMap((client) =>
      stage.replicas
        .keys()
        .toArray()
        .map((replica) => sendRequests(stage, replica, client, policies, random)),
    )
    await Promise.all([...traffic, runFaults(stage, faults)])
    await stage.settled()
    for (const client of clients) for (const policy of policies) await useUp(stage, client, policy)
    await stage.settled()
    return { seed, faults, violations: await judgeAll(stage, clients, policies) }
  } finally {
    await stage.close()
  }
}

function drawPolicies(random: () => number): Policy[] {
  const quota = (): number => 1 + Math.floor(random() * random() * 60)
  return [
    makePolicy('local', quota(), LONG_MS),
    makePolicy('closed', quota(), LONG_MS, { onStoreError: 'closed' }),
    makePolicy('open', quota(), LONG_MS, { onStoreError: 'open' }),
    makePolicy('brief', quota(), 250),
    makePolicy('sliding', quota(), LONG_MS, { algorithm: 'sliding' }),
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
  const untilMs = performance.now() + TROUBLED_MS * 1.2
  while (performance.now() < untilMs) {
    const chosen = policies.filter(() => random() < 0.4)
    const burst = 1 + Math.floor(random() * BURST)
    for (let sent = 0; sent < burst && chosen.length > 0; sent++)
      asked.push(stage.ask(replica, client, chosen))
    await sleep(random() * 30)
  }
  await Promise.all(asked)
}

/** Asks the replicas in turn until each has refused: the number of requests shows the earlier counts. */
async function useUp(stage: Stage, client: string, policy: Policy): Promise<void> {
  for (let allowed = 0, refused = 0; refused < REPLICAS && allowed <= 2 * policy.quota;) {
    const decision = await stage.ask((allowed + refused) % REPLICAS, client, [policy])
    if (decision.outcome === 'allowed') allowed += 1
    else refused += 1
  }
}

async function judgeAll(
  stage: Stage,
  clients: readonly string[],
  policies: readonly Policy[],
): Promise<string[]> {
  const waitedMs = stage.maxWaitMs()
  const violations = waitedMs > 300 ? [`a request waited ${Math.round(waitedMs)} ms`] : []
  for (const client of clients) {
    for (const policy of policies) {
      const history = await stage.historyOf(client, policy, hasPlainCount(policy))
      const { quota, onStoreError } = policy
      for (const violation of judge(history)) {
        violations.push(`${client} under ${policy.name} (${quota}, ${onStoreError}): ${violation}`)
      }
    }
  }
  return violations
}

/** Whether the count can be read at the end: the window has not ended, and the key holds only the count. */
function hasPlainCount({ windowMs, algorithm }: Policy): boolean {
  return windowMs === LONG_MS && algorithm === 'fixed'
}

/** The text for a failed test: the command to replay, and the observations. */
export function tellVerdict({ seed, faults, violations }: Verdict): string {
  return [`TEST_SEED=${seed} FAULT_HISTORIES=1 replays: ${tellFaults(faults)}`, ...violations].join('\n  ')
}
