import type { Charge } from '../../../proxy/limits/limiter.ts'
import type { Policy } from '../../../proxy/policy.ts'

/** A policy, with defaults for everything that a test does not set. */
export function makePolicy(
  name: string,
  quota: number,
  windowMs: number,
  rest: Partial<Policy> = {},
): Policy {
  return {
    name,
    quota,
    windowMs,
    algorithm: 'fixed',
    mode: 'enforce',
    onStoreError: 'local',
    partition: [{ kind: 'ip' }],
    ...rest,
  }
}

export function chargeAll(partitionKey: string, policies: readonly Policy[]): Charge[] {
  return policies.map((policy) => ({ policy, partitionKey }))
}

let lastClient = 0

/** A client that no other test uses. */
export function newClient(): string {
  lastClient += 1
  return `ip:192.0.2.${lastClient}`
}
