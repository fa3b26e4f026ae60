import type { Decision, PolicyState } from '../../../proxy/limits/limiter.ts'
import { refusesOver, type Policy } from '../../../proxy/policy.ts'

export type CountingModel = {
  /** What must be heard at an instant, not earlier than the one before; and counts the request. */
  decide(
    client: string,
    policies: readonly Policy[],
    nowMs: number,
  ): Exclude<Decision, { outcome: 'unavailable' }>
}

/**
 * The promise of the counters in the plainest way: every admission is kept for ever. Under a sliding window those in
 * (now - window, now] count, under a fixed one those since the window's first request, if it has not ended.
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
