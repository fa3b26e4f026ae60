import { setTimeout as sleep } from 'node:timers/promises'
import type { Charge, Decision, Limiter } from '../../proxy/limits/limiter.ts'
import type { Policy } from '../../proxy/policy.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/limiters.ts'
import { startRelay, type Relay } from '../support/network/relay.ts'
import { startBreakableRedis, type BreakableRedis } from './breakable-redis.ts'
import type { Attempt, History, Loss, Trouble } from './history.ts'
import { watchPauses } from './pauses.ts'

/** A limiter on Redis, as a gateway has it: whole, or broken on purpose. */
export type Replica = Limiter & { storeState(): string; close(): void }

/** Some replicas on a Redis of their own, each behind a relay of its own, and a record of everything that happens to them. */
export type Stage = {
  readonly relays: readonly Relay[]
  readonly replicas: readonly Replica[]
  /** Asks, and records the outcome for each rule. */
  ask(replica: number, client: string, policies: readonly Policy[]): Promise<Decision>
  readonly redis: BreakableRedis
  /** Says that replicas and Redis cannot rely on each other from now on; call the function returned when they can. */
  trouble(replicas: readonly number[]): () => void
  /** Resolves when no replica is in trouble any more. */
  settled(): Promise<void>
  /** The longest that any request has waited, without the time in which this process itself did nothing. */
  maxWaitMs(): number
  /** The records, with the counts in Redis if `reads` says that the window cannot have ended. */
  historyOf(client: string, policy: Policy, reads: boolean): Promise<History>
  close(): Promise<void>
}

/** Shows whether it is Redis that answers: without it there is no answer. */
const probe = makePolicy('probe', 1_000_000, 60_000, { onStoreError: 'closed' })

/** A request waits 100 ms for Redis, and asks it twice where that has lost its script. */
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
    // An answer at once is not to have waited for its turn in the tests' event loop.
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

  /** Two answers by Redis, one after the other: with the first, a replica sends what it owes, ahead of the second. */
  async function settle(index: number): Promise<void> {
    const replica = at(replicas, index)
    const state = at(states, index)
    while (isOpen && !isTroubled(state)) {
      await Promise.all(at(waiting, index))
      const charges: Charge[] = chargeAll(newClient(), [probe])
      const isAnswered = async (): Promise<boolean> =>
        replica.storeState() === 'available' && (await replica.decide(charges)).outcome === 'allowed'
      if ((await isAnswered()) && (await isAnswered()) && replica.storeState() === 'available') {
        // Another trouble may have begun meanwhile: then this one goes on.
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
  // The first connection is a trouble too: until it is there, the replicas are on their own.
  trouble(all)()

  // A busy machine is a trouble too. The relays are in this process: when it pauses, it is the network that does. So the
  // watch goes through one as well, or it would wait for half as many turns of the event loop as a request does.
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
