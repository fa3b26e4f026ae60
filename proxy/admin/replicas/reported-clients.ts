import type { ThrottledClient } from '../../limits/clients/throttled-clients.ts'

export const REPORTED = 200
const OF_ALL_POLICIES = 100
const OF_EACH_POLICY = 20

/**
 * Chooses the most refused clients, and some clients of each further policy, so that a flood under one policy does not hide the others.
 *
 * @param limited clients, the most refused first
 */
export function chooseReported(limited: readonly ThrottledClient[]): ThrottledClient[] {
  const chosen = limited.slice(0, OF_ALL_POLICIES)
  const perPolicy = new Map<string, number>()
  for (const client of limited.slice(OF_ALL_POLICIES)) {
    if (chosen.length >= REPORTED) break
    const count = perPolicy.get(client.policy) ?? 0
    if (count >= OF_EACH_POLICY) continue
    perPolicy.set(client.policy, count + 1)
    chosen.push(client)
  }
  return chosen
}
