import { setTimeout as sleep } from 'node:timers/promises'
import type { Charge, Decision, Limiter } from '../../proxy/limits/limiter.ts'
import type { Policy } from '../../proxy/policy.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { startRelay, type Relay } from '../support/network/relay.ts'
import { startBreakableRedis, type BreakableRedis } from './breakable-redis.ts'
import type { Attempt, History, Loss, Trouble } from './history.ts'
import { watchPauses } from './pauses.ts'

/** A limiter on Redis, as a gateway has it: intact, or broken on purpose. */
export type Replica = Limiter & { storeState(): string; close(): void }

/** Replicas on one Redis server of their own, each behind its own relay, and a record of everything that happens to them. */
export type Stage = {
  readonly relays: readonly Relay[]
  readonly replicas: readonly Replica[]
  /** Sends a request, and records the outcome for each rule. */
  ask(replica: number, client: string, policies: readonly Policy[]): Promise<Decision>
  readonly redis: BreakableRedis
  /** Records that replicas and Redis cannot rely on each other from now on. Call the returned function when they can again. */
  trouble(replicas: readonly number[]): () => void
  /** Resolves when no replica is in trouble any more. */
  settled(): Promise<void>
  /** The longest time that any request has waited, without the pauses of this process. */
  maxWaitMs(): number
  /** The records, with the counts in Redis if `reads` says that the window cannot have ended. */
  historyOf(client: string, policy: Policy, reads: boolean): Promise<History>
  close(): Promise<void>
}

/** Shows whether Redis answers: under `onStoreError: closed` a replica gives no answer without Redis. */
const probe = makePolicy('probe', 1_000_000, 60_000, { onStoreError: 'closed' })

/** A request waits 100 ms for Redis, and asks twice if Redis has lost the script. */
const MAX_PAUSE_MS = 40

export async function openStage(makeReplica: (url: string) => Replica, count: number): Promise<Stage> {
  const redis = await startBreakableRedis()
  const relays = await Promise.all(Array.from({ length: count }, () => startRelay(redis.port)))
  const replicas = relays.map(({ port }) => makeReplica(`redis://127.0.0.1:${port}`))
  const attempts = new Map<string, Attempt[]>()
  const waiting = replicas.map(() => new Set<Promise<unknown>>())
  const troubles: Trouble[] = []
  const losses: Loss[] = []
  const states = replicas.map(() => ({ causes: 0, fromMs: Infinity, settling: Promise.resolve() }))
  let isOpen = true
  let maxWaitMs = 0

  async function ask(index: number, client: string, policies: readonly Policy[]): Promise<Decision> {
    const replica = at(replicas, index)
    const sentMs = performance.now()
    const pausedMs = pauses.pausedMs()
    const answer = replica.decide(chargeAll(client, policies))
    const asked = answer instanceof Promise
    const pending = Promise.resolve(answer)
    at(waiting, index).add(pending)
    const decision = await pending
    at(waiting, index).delete(pending)
    // An immediate answer must not include the time spent waiting for a turn of the tests' event loop.
    const answeredMs = asked ? performance.now() : sentMs
    maxWaitMs = Math.max(maxWaitMs, answeredMs - sentMs - (pauses.pausedMs() - pausedMs))
    for (const policy of policies) {
      const outcome = outcomeOf(decision, policy)
      const name = nameOf(client, policy)
      const known = attempts.get(name) ?? []
      attempts.set(name, [...known, { replica: index, sentMs, answeredMs, outcome, asked }])
    }
    return decision
  }

  /** Waits for two answers by Redis, one after the other: with the first, a replica sends what it owes, before the second. */
  async function settle(index: number): Promise<void> {
    const replica = at(replicas, index)
    const state = at(states, index)
    while (isOpen && !isTroubled(state)) {
      await Promise.all(at(waiting, index))
      const charges: Charge[] = chargeAll(newClient(), [probe])
      const isAnswered = async (): Promise<boolean> =>
        replica.storeState() === 'available' && (await replica.decide(charges)).outcome === 'allowed'
      if ((await isAnswered()) && (await isAnswered()) && replica.storeState() === 'available') {
        // If another trouble has begun meanwhile, this one continues.
        if (isTroubled(state)) return
        troubles.push({ replica: index, fromMs: state.fromMs, untilMs: performance.now() })
        state.fromMs = Infinity
        return
      }
      await sleep(10)
    }
  }

  function trouble(indexes: readonly number[], fromMs = performance.now()): () => void {
    for (const index of indexes) {
      const state = at(states, index)
      state.causes += 1
      state.fromMs = Math.min(state.fromMs, fromMs)
    }
    return () => {
      for (const index of indexes) {
        const state = at(states, index)
        state.causes -= 1
        if (state.causes === 0) state.settling = state.settling.then(() => settle(index))
      }
    }
  }

  const all = [...replicas.keys()]
  // The first connection is a trouble too: until it is open, the replicas decide alone.
  trouble(all)()

  // A busy machine is a trouble too. The relays are in this process, so when it pauses, the network pauses. The watch uses a relay as well;
  // otherwise it would wait for half as many turns of the event loop as a request does.
  const sound = await startRelay(redis.port)
  const pauses = watchPauses(redis.connect(sound.port), MAX_PAUSE_MS, (fromMs) => trouble(all, fromMs)())

  return {
    relays,
    replicas,
    ask,
    redis: {
      ...redis,
      async kill() {
        await redis.kill()
        losses.push({ fromMs: -Infinity, untilMs: performance.now() })
      },
    },
    trouble,
    async settled() {
      await pauses.caughtUp()
      await Promise.all(states.map(({ settling }) => settling))
    },
    maxWaitMs: () => maxWaitMs,
    async historyOf(client, policy, reads) {
      const history = { rule: policy, attempts: attempts.get(nameOf(client, policy)) ?? [], troubles, losses }
      if (!reads) return history
      const key = `sluice:1:{${client}}:${policy.name}:${policy.windowMs}`
      const counted = Number(await redis.operate((operator) => operator.get(key)))
      return { ...history, counted }
    },
    async close() {
      isOpen = false
      pauses.close()
      for (const replica of replicas) replica.close()
      await Promise.all([...[...relays, sound].map((relay) => relay.close()), redis.stop()])
    },
  }
}

function isTroubled({ causes }: { readonly causes: number }): boolean {
  return causes > 0
}

function nameOf(client: string, policy: Policy): string {
  return `${client} ${policy.name}`
}

/** What the decision about a whole request means for one of its rules. */
function outcomeOf(decision: Decision, policy: Policy): Attempt['outcome'] {
  if (decision.outcome === 'unavailable') {
    return policy.onStoreError === 'closed' ? 'unavailable' : 'refused-elsewhere'
  }
  const state = decision.states.find((one) => one.policy === policy)
  if (decision.outcome === 'allowed') return state ? 'allowed' : 'passed'
  return state?.exceeded ? 'refused' : 'refused-elsewhere'
}

function at<T>(list: readonly T[], index: number): T {
  const found = list[index]
  if (found === undefined) throw new RangeError(`there is no ${index} among ${list.length}`)
  return found
}
