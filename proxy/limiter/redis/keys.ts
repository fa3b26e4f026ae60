import type { Policy } from '../../policy.ts'

/** The format of keys and values: another one gets another number, so that old and new gateways do not mix them up. */
const KEY_PREFIX = 'sluice:1'

/** What the decision's script is told of a policy, made once. */
export type RedisPolicy = {
  readonly keySuffix: string
  readonly quota: string
  readonly window: string
  /** For a request's first charge, and for its other charges. */
  readonly modeFirst: 'E' | 'S'
  readonly modeJoined: 'e' | 's'
  readonly algorithm: 'f' | 's'
}

export function describePolicy({ name, quota, windowMs, algorithm, mode }: Policy): RedisPolicy {
  return {
    keySuffix: `}:${name}:${windowMs}${algorithm === 'sliding' ? ':sliding' : ''}`,
    quota: String(quota),
    window: String(windowMs),
    modeFirst: mode === 'enforce' ? 'E' : 'S',
    modeJoined: mode === 'enforce' ? 'e' : 's',
    algorithm: algorithm === 'fixed' ? 'f' : 's',
  }
}

/**
 * The key of a client's counter: `sluice:1:{<partition key>}:<policy>:<window in ms>`, with `:sliding` behind it where
 * the window slides. The braces make all counters of one client share a hash slot. The quota is not part of the key, so
 * a changed one takes effect at once; a changed window or algorithm starts new counters.
 */
export function keyOf({ keySuffix }: RedisPolicy, partitionKey: string): string {
  return `${KEY_PREFIX}:{${partitionKey}${keySuffix}`
}
