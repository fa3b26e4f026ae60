import { takesUnits, type Policy } from '../../../policy.ts'

/** The format of keys and values: another one gets another number, so that old and new gateways do not mix them up. */
const FORMAT = '1'

/**
 * What all keys of a gateway begin with: `sluice:1`, or `sluice:<namespace>:1`. Gateways with different namespaces share
 * nothing. A namespace begins with a letter, so that none looks like the number of a format.
 */
export function keyPrefixOf(namespace: string | undefined): string {
  return namespace === undefined ? `sluice:${FORMAT}` : `sluice:${namespace}:${FORMAT}`
}

/** A policy in the form that the scripts take, made once. */
export type RedisPolicy = {
  readonly keyStart: string
  readonly keySuffix: string
  readonly quota: string
  readonly window: string
  /** Of a token bucket: how long it takes to get one unit back, in milliseconds, perhaps with a fraction. */
  readonly unit: string
  /** For a request's first charge, and for its other charges. */
  readonly modeFirst: 'E' | 'S'
  readonly modeJoined: 'e' | 's'
  /** A letter for the scripts; in upper case where units, or the name of a request in flight, are given with each charge. */
  readonly algorithm: 'f' | 's' | 'F' | 'S' | 'T' | 'C'
}

/** @param keyPrefix of `keyPrefixOf` */
export function describePolicy(policy: Policy, keyPrefix: string): RedisPolicy {
  const { name, quota, windowMs, algorithm, mode, sharedWindowMs = windowMs } = policy
  return {
    keyStart: `${keyPrefix}:{`,
    keySuffix:
      algorithm === 'concurrency' ? `}:${name}:in-flight` : `}:${name}:${sharedWindowMs}${kinds[algorithm]}`,
    quota: String(quota),
    window: String(windowMs),
    unit: String(windowMs / quota),
    modeFirst: mode === 'enforce' ? 'E' : 'S',
    modeJoined: mode === 'enforce' ? 'e' : 's',
    algorithm: algorithm === 'concurrency' ? 'C' : letters[algorithm][takesUnits(policy) ? 1 : 0],
  }
}

const kinds = { fixed: '', sliding: ':sliding', 'token-bucket': ':bucket' } as const
const letters = { fixed: ['f', 'F'], sliding: ['s', 'S'], 'token-bucket': ['T', 'T'] } as const

/**
 * The key of a client's counter: `sluice:1:{<partition key>}:<policy>:<window in ms>`, in a namespace
 * `sluice:<namespace>:1:…`, with `:sliding` behind it where the window slides, `:bucket` for a token bucket, and `in-flight`
 * in place of the window for requests in flight. The braces make all counters of one client share a hash slot. The quota is not part of the key, so
 * a changed one takes effect at once; a changed window or algorithm starts new counters.
 */
export function keyOf({ keyStart, keySuffix }: RedisPolicy, partitionKey: string): string {
  return keyStart + partitionKey + keySuffix
}
