import { setTimeout as sleep } from 'node:timers/promises'
import type { Reservation } from '../../proxy/limits/limiter.ts'
import { reservedUnits, type Policy } from '../../proxy/policy.ts'
import { LEASE_MS } from '../../proxy/limits/algorithms/concurrency/concurrency.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { drawFaults, runFaults, tellFaults, type Fault } from './faults.ts'
import type { Verdict } from './random-history.ts'
import { judgeSettled, type SettledAttempt } from './settled-judge.ts'
import { openStage, type Replica, type Stage } from './stage.ts'

const REPLICAS = 2
const CLIENTS = 2
const TROUBLED_MS = 500
const BURST = 5

/** Longer than any history, so that the whole history is in one window. */
const LONG_MS = 120_000
const BRIEF_MS = 1000

/** The share of reservations whose gateway dies before it settles. */
const CRASH_SHARE = 0.1

/**
 * Plays the history of a seed: clients send requests to two replicas at once under rules that reserve, while the network and Redis fail.
 * Each request is settled after a while for more, for less or for nothing, or never. At the end the judge checks the units in use at each
 * moment, and the final counts.
 */
export async function playSettledHistory(
  seed: number,
  makeReplica: (url: string) => Replica,
  draw: (random: () => number) => Fault[] = (random) => drawFaults(random, REPLICAS, TROUBLED_MS),
): Promise<Verdict> {
  const random = seededRandom(seed)
  const faults = draw(random)
  const policies = drawPolicies(random)
  const clients = Array.from({ length: CLIENTS }, newClient)
  const attempts = new Map<string, SettledAttempt[]>()
  const stage = await openStage(makeReplica, REPLICAS)
  try {
    await stage.settled()
    const traffic = clients.flatMap((client) =>
      stage.replicas
        .keys()
        .toArray()
        .flatMap((replica) =>
          policies.map((policy) => sendRequests({ stage, replica, client, policy, random, attempts })),
        ),
    )
    await Promise.all([...traffic, runFaults(stage, faults)])
    await stage.settled()
    const violations: string[] = []
    for (const client of clients) {
      for (const policy of policies) {
        const { troubles, losses } = await stage.historyOf(client, policy, false)
        const own = attempts.get(nameOf(client, policy)) ?? []
        const used = await countedFor(stage, client, policy)
        for (const violation of judgeSettled({ policy, attempts: own, troubles, losses, used }))
          violations.push(`${client} under ${policy.name} (${policy.quota}): ${violation}`)
      }
    }
    violations.push(...(await playEdge(stage, random)))
    return { seed, faults, violations }
  } finally {
    await stage.close()
  }
}

/** Draws policies without local counters, so that Redis allowed every allowed request. */
function drawPolicies(random: () => number): Policy[] {
  const quota = (least: number): number => least + Math.floor(random() * random() * 30)
  const countStatus = [{ first: 401, last: 401 }]
  const closed = { onStoreError: 'closed' as const }
  const settle = { kind: 'header' as const, name: 'x-cost', hide: false }
  return [
    makePolicy('login', quota(1), LONG_MS, { ...closed, countStatus }),
    makePolicy('tokens', quota(5), LONG_MS, { ...closed, cost: { reserve: 3, settle } }),
    makePolicy('sliding', quota(1), LONG_MS, { ...closed, countStatus, algorithm: 'sliding' }),
    makePolicy('bucket', quota(3), LONG_MS * 1000, { ...closed, countStatus, algorithm: 'token-bucket' }),
    makePolicy('exports', quota(1), LEASE_MS, { ...closed, algorithm: 'concurrency' }),
  ]
}

type Traffic = {
  readonly stage: Stage
  readonly replica: number
  readonly client: string
  readonly policy: Policy
  readonly random: () => number
  readonly attempts: Map<string, SettledAttempt[]>
}

async function sendRequests({ stage, replica, client, policy, random, attempts }: Traffic): Promise<void> {
  const pending: Promise<unknown>[] = []
  const own = attempts.get(nameOf(client, policy)) ?? []
  attempts.set(nameOf(client, policy), own)
  const untilMs = performance.now() + TROUBLED_MS * 1.2
  while (performance.now() < untilMs) {
    const burst = 1 + Math.floor(random() * BURST)
    for (let sent = 0; sent < burst; sent++) {
      const units = reservedUnits(policy)
      const cost = policy.cost ? Math.floor(random() * 6) : Number(random() < 0.3)
      const dies = policy.algorithm !== 'concurrency' && random() < CRASH_SHARE
      const lastsMs = random() * 40
      pending.push(
        (async () => {
          const sentMs = performance.now()
          const decision = await stage.ask(replica, client, [policy])
          const answeredMs = performance.now()
          const [state] = decision.outcome === 'allowed' ? decision.states : []
          const attempt = { replica, sentMs, answeredMs, outcome: decision.outcome, units, cost }
          if (!state?.reservation || dies) {
            own.push({ ...attempt, settledMs: Infinity })
            return
          }
          await sleep(lastsMs)
          // The units are in use at least until this moment.
          own.push({ ...attempt, settledMs: performance.now() })
          stage.replicas[replica]?.settle(state.reservation, cost)
        })(),
      )
    }
    await sleep(random() * 60)
  }
  await Promise.all(pending)
}

/** The count in Redis, once everything that the replicas sent earlier has arrived. */
async function countedFor(stage: Stage, client: string, policy: Policy): Promise<number> {
  const probe = makePolicy('probe', 1_000_000, 60_000, { onStoreError: 'closed' })
  for (const replica of [...stage.replicas.keys(), ...stage.replicas.keys()])
    await stage.ask(replica, newClient(), [probe])
  const key = `sluice:1:{${client}}:${policy.name}:${policy.windowMs}`
  return stage.redis.operate(async (redis) => {
    switch (policy.algorithm) {
      case 'fixed':
        return Number(await redis.get(key))
      case 'sliding':
        return redis.llen(`${key}:sliding`)
      case 'concurrency':
        return redis.zcard(`sluice:1:{${client}}:${policy.name}:in-flight`)
      case 'token-bucket': {
        const debtUs = Number((await redis.get(`${key}:bucket`))?.split(' ')[0] ?? 0)
        // Hardly any of it drains during a history.
        return Math.round((debtUs / 1000 / policy.windowMs) * policy.quota)
      }
      default:
        throw new RangeError(policy.algorithm)
    }
  })
}

/** Plays reservations of a window that has ended: settling them in the next window must change nothing. */
async function playEdge(stage: Stage, random: () => number): Promise<string[]> {
  const client = newClient()
  const policy = makePolicy('brief', 20, BRIEF_MS, {
    onStoreError: 'closed',
    countStatus: [{ first: 401, last: 401 }],
  })
  const reserve = async (count: number): Promise<Reservation[]> => {
    const decisions = await Promise.all(
      Array.from({ length: count }, async () => stage.replicas[0]?.decide(chargeAll(client, [policy]))),
    )
    return decisions.flatMap((decision) =>
      decision?.outcome === 'allowed' ? decision.states.flatMap(({ reservation }) => reservation ?? []) : [],
    )
  }
  const early = await reserve(1 + Math.floor(random() * 5))
  // The next window begins with its first request. Late settlements must be told apart from it even by a few milliseconds.
  await sleep(BRIEF_MS + 5 + random() * 45)
  const beganMs = performance.now()
  const wanted = 1 + Math.floor(random() * 5)
  const late = await reserve(wanted)
  for (const reservation of early) stage.replicas[0]?.settle(reservation, 0)
  await stage.ask(0, newClient(), [policy])
  await stage.ask(0, newClient(), [policy])
  const used = await countedFor(stage, client, policy)
  // On a busy machine the window may have ended, or an answer may have come too late.
  if (late.length < wanted || performance.now() - beganMs > BRIEF_MS / 2 || used === wanted) return []
  return [
    `${used} counted in a window with ${late.length}, in which ${early.length} of the one before were given back`,
  ]
}

function nameOf(client: string, policy: Policy): string {
  return `${client} ${policy.name}`
}

/** The text for a failed test: the command to replay, and the observations. */
export function tellSettled({ seed, faults, violations }: Verdict): string {
  return [`TEST_SEED=${seed} FAULT_HISTORIES=1 replays: ${tellFaults(faults)}`, ...violations].join('\n  ')
}
