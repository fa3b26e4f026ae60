import type { Decision, PolicyState } from '../../../proxy/limits/limiter.ts'
import { refusesOver, type Policy } from '../../../proxy/policy.ts'

export type CountingModel = {
  /** Counts a request and returns the decision that a limiter must make at this instant. Instants must not decrease. */
  decide(
    client: string,
    policies: readonly Policy[],
    nowMs: number,
  ): Exclude<Decision, { outcome: 'unavailable' }>
}

/**
 * The simplest implementation of what the counters promise: it keeps every admission forever. A sliding window counts the admissions in
 * (now - window, now]; a fixed window counts those since the first request of the window, if the window has not ended.
 */
export function createCountingModel(): CountingModel {
  const admissions = new Map<string, number[]>()

  function admittedAt(client: string, policy: Policy): number[] {
    const key = `${policy.name} ${client}`
    const times = admissions.get(key) ?? []
    admissions.set(key, times)
    return times
  }

  function countedAt(client: string, { windowMs, algorithm, name }: Policy, nowMs: number): number[] {
    const times = admissions.get(`${name} ${client}`) ?? []
    if (algorithm === 'sliding') return times.filter((timeMs) => timeMs + windowMs > nowMs)
    let first = 0
    for (const [index, timeMs] of times.entries()) if (timeMs >= (times[first] ?? 0) + windowMs) first = index
    return (times[first] ?? -Infinity) + windowMs > nowMs ? times.slice(first) : []
  }

  return {
    decide(client, policies, nowMs) {
      const isFull = (policy: Policy): boolean => countedAt(client, policy, nowMs).length >= policy.quota
      const exceeded = policies.map(isFull)
      const refusedBy = policies.find((policy) => refusesOver(policy) && isFull(policy))
      const states: PolicyState[] = []
      for (const [index, policy] of policies.entries()) {
        if (!refusedBy && !exceeded[index]) admittedAt(client, policy).push(nowMs)
        const counted = countedAt(client, policy, nowMs)
        states.push({
          policy,
          exceeded: exceeded[index] ?? false,
          remaining: policy.quota - counted.length,
          resetMs: (counted[0] ?? nowMs) + policy.windowMs - nowMs,
        })
      }
      return refusedBy ? { outcome: 'refused', refusedBy, states } : { outcome: 'allowed', states }
    },
  }
}
