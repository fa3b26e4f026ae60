import { maxDelayMs, refusesOver, type Policy } from '../../../policy.ts'
import { planKeyName } from '../../plans/plan-key-name.ts'
import { readsStoredPlan } from '../../../policy/plans.ts'
import type { Algorithm } from '../../algorithms/algorithm.ts'
import { calendarUnits } from '../../algorithms/calendar/calendar.ts'
import { algorithmOf, takesUnits, usualAlgorithm, withPlan } from '../../algorithms/registry.ts'
import type { PlanOwner } from '../../plans/plan-store.ts'

/** The number of the format of keys and values. Each format gets its own, so that old and new gateways do not mix them up. */
const FORMAT = '1'

/**
 * The prefix of all keys of a gateway: `sluice:1`, or `sluice:<namespace>:1`. Gateways with different namespaces share nothing. A
 * namespace begins with a letter, so that it cannot look like the number of a format.
 */
export function keyPrefixOf(namespace: string | undefined): string {
  return namespace === undefined ? `sluice:${FORMAT}` : `sluice:${namespace}:${FORMAT}`
}

/** A policy in the form that the scripts take, made once. */
export type RedisPolicy = {
  readonly algorithm: Algorithm
  readonly keyStart: string
  readonly keySuffix: string
  /** The end of the key of a client's plan. */
  readonly planKeySuffix: string
  /** Whether charges come with units, or with the name of a request in flight. */
  readonly takesUnits: boolean
  /** The arguments for `PolicyArguments`. */
  readonly described: readonly string[]
  /** The arguments for scripts of plain fixed windows; undefined if the policy needs more than these scripts do. */
  readonly plain: readonly string[] | undefined
  /** The plans for `PolicyArguments` if a client's plan is read with its counter; otherwise undefined. */
  readonly plans: string | undefined
}

/**
 * @param keyPrefix from `keyPrefixOf`
 * @param wallNow the time of day, in milliseconds since 1970
 */
export function describePolicy(policy: Policy, keyPrefix: string, wallNow = Date.now): RedisPolicy {
  const { name, quota, windowMs } = policy
  const mode = refusesOver(policy) ? 'enforce' : 'shadow'
  const algorithm = algorithmOf(policy)
  const delayMs = maxDelayMs(policy)
  const units = delayMs > 0 ? String(delayMs) : takesUnits(policy) ? 'units' : 'one'
  const { redis } = algorithm
  const describedBy = (window: string): readonly string[] => [
    algorithm.name,
    mode,
    String(quota),
    window,
    units,
  ]
  const description = {
    algorithm,
    keyStart: `${keyPrefix}:{`,
    keySuffix: `}:${name}:${redis.keyEnd(policy)}`,
    planKeySuffix: `${PLAN_MARK}${planKeyName(policy)}`,
    takesUnits: takesUnits(policy),
    plans: plansText(policy),
    plain:
      algorithm === usualAlgorithm && !takesUnits(policy)
        ? [String(quota), String(windowMs), mode === 'enforce' ? '1' : '0']
        : undefined,
    described: describedBy(String(windowMs)),
  }
  if (!redis.windowText) return description
  return {
    ...description,
    get described() {
      return describedBy(`${windowMs} ${redis.windowText?.(policy, wallNow())}`)
    },
  }
}

/**
 * Makes a function that calls `describePolicy` once for each policy.
 *
 * @param wallNow the time of day, in milliseconds since 1970
 * @param described called with each new description
 */
export function createDescriber(
  keyPrefix: string,
  wallNow?: () => number,
  described?: (policy: Policy, description: RedisPolicy) => void,
): (policy: Policy) => RedisPolicy {
  const known = new WeakMap<Policy, RedisPolicy>()
  return (policy) => {
    const before = known.get(policy)
    if (before) return before
    const description = describePolicy(policy, keyPrefix, wallNow)
    known.set(policy, description)
    described?.(policy, description)
    return description
  }
}

/** Returns the window of the plans in milliseconds, if it differs from the policy's, and `name=quota` of each plan between spaces. */
function plansText(policy: Policy): string | undefined {
  if (!policy.plans || !readsStoredPlan(policy)) return undefined
  const quotas = Object.entries(policy.plans.quotas)
  const [[first] = ['']] = quotas
  const { windowMs } = withPlan(policy, first)
  const window = windowMs === policy.windowMs ? '' : String(windowMs)
  return `${window} ${quotas.map(([name, quota]) => `${name}=${quota}`).join(' ')} `
}

/**
 * The key of the plan that was set for a client: `sluice:1:{<partition key>}:plan:<key>`, in the hash slot of its counters. `<key>` comes
 * from `planKeyName`, such as `header:x-api-key`.
 */
export function planKeyOf(keyPrefix: string, { partitionKey, keyName }: PlanOwner): string {
  return `${keyPrefix}:{${partitionKey}}:plan:${keyName}`
}

/** @returns undefined for a key that does not hold a plan */
export function planOwnerOf(keyPrefix: string, key: string): PlanOwner | undefined {
  const start = `${keyPrefix}:{`.length
  const end = key.indexOf(PLAN_MARK, start)
  if (end === -1) return undefined
  const keyName = key.slice(end + PLAN_MARK.length)
  return endsCounter.test(keyName) ? undefined : { partitionKey: key.slice(start, end), keyName }
}

const PLAN_MARK = '}:plan:'

/** Matches the ends of counter keys (`keyEnd`), which follow the mark if a rule is named `plan`. Matches no result of `planKeyName`. */
const endsCounter = new RegExp(
  `^(?:\\d+(?:\\.\\d+)?(?:e[+-]?\\d+)?|in-flight|${calendarUnits.join('|')})(?::|$)`,
)

/** @param description of a policy with `plans` */
export function planKeyUnder({ keyStart, planKeySuffix }: RedisPolicy, partitionKey: string): string {
  return keyStart + partitionKey + planKeySuffix
}

/**
 * The key of a client's counter: `sluice:1:{<partition key>}:<policy>:<keyEnd of its algorithm>`, in a namespace
 * `sluice:<namespace>:1:…`. The braces make all counters of one client share a hash slot. The quota is not part of the key, so
 * a changed quota takes effect at once; a changed window or algorithm starts new counters.
 */
export function keyOf({ keyStart, keySuffix }: RedisPolicy, partitionKey: string): string {
  return keyStart + partitionKey + keySuffix
}

/** The second key of a counter, in the same hash slot, which holds the number of recently leased units. */
export function leasedKeyOf(policy: RedisPolicy, partitionKey: string): string {
  return `${keyOf(policy, partitionKey)}:leased`
}
