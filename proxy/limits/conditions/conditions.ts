import { doAtOnce, type Steps } from '../../../shared/steps.ts'
import type { Policy, Rule, RuleCondition } from '../../policy.ts'
import {
  compileCondition,
  type ConditionOptions,
  type ConditionSource,
  type ReadCondition,
} from './compile-condition.ts'
import { NO, YES, type Certainty } from './readings.ts'

/** `when` and `unless` of all rules, compiled once. */
export type Conditions = {
  /**
   * Those of the policies whose rule applies to a request: each condition of `when` may hold, and none of `unless` certainly does. A
   * condition that several rules have is read once.
   */
  applying(policies: readonly Policy[], source: ConditionSource): readonly Policy[]
  /** The condition for which a policy does not apply; undefined if it applies. */
  unmet(policy: Policy, source: ConditionSource): UnmetCondition | undefined
}

export type UnmetCondition = { readonly field: 'when' | 'unless'; readonly condition: RuleCondition }

/** A condition, with its certainty for the request that is being decided about. */
type Shared = {
  readonly condition: RuleCondition
  readonly read: ReadCondition
  /** The request of which `certainty` is. */
  request: number
  certainty: Certainty
}

type OfPolicy = { readonly when: readonly Shared[]; readonly unless: readonly Shared[] }

/** The conditions of all rules, compiled at once. @internal exported for its test */
export function compileConditions(rules: readonly Rule[], options: ConditionOptions): Conditions | undefined {
  return doAtOnce(compileConditionsInSteps(rules, options))
}

/** @returns undefined where no rule has conditions */
export function* compileConditionsInSteps(
  rules: readonly Rule[],
  options: ConditionOptions,
): Steps<Conditions | undefined> {
  const shared = new Map<string, Shared>()
  const share = (condition: RuleCondition): Shared => {
    const text = JSON.stringify(condition)
    const known = shared.get(text)
    if (known) return known
    const made: Shared = { condition, read: compileCondition(condition, options), request: 0, certainty: NO }
    shared.set(text, made)
    return made
  }
  const ofPolicies = new Map<Policy, OfPolicy>()
  for (const { policy, when = [], unless = [], overrides = [] } of rules) {
    yield
    if (when.length === 0 && unless.length === 0) continue
    const own = { when: when.map(share), unless: unless.map(share) }
    for (const each of [policy, ...overrides.map((override) => override.policy)]) ofPolicies.set(each, own)
  }
  if (ofPolicies.size === 0) return undefined

  let request = 0
  const certaintyOf = (one: Shared, source: ConditionSource): Certainty => {
    if (one.request !== request) {
      one.certainty = one.read(source)
      one.request = request
    }
    return one.certainty
  }
  const unmetOf = (policy: Policy, source: ConditionSource): UnmetCondition | undefined => {
    const own = ofPolicies.get(policy)
    if (!own) return undefined
    for (const one of own.when)
      if (certaintyOf(one, source) === NO) return { field: 'when', condition: one.condition }
    for (const one of own.unless)
      if (certaintyOf(one, source) === YES) return { field: 'unless', condition: one.condition }
    return undefined
  }
  return {
    applying(policies, source) {
      request += 1
      const first = policies.findIndex((policy) => unmetOf(policy, source) !== undefined)
      if (first === -1) return policies
      return policies.filter((policy, at) => at < first || unmetOf(policy, source) === undefined)
    },
    unmet(policy, source) {
      request += 1
      return unmetOf(policy, source)
    },
  }
}
