import type { Steps } from '../../../shared/steps.ts'
import type { Policy, Rule, RuleCondition } from '../../policy.ts'
import type { AddressLists } from '../../request/addresses/lists/address-lists.ts'
import { compileCondition, type CompiledCondition } from './compile-condition.ts'
import { ConditionReaders, type ConditionSource } from './condition-readers.ts'

export type ConditionOptions = {
  /** The address lists that conditions name. */
  readonly files: AddressLists
  /** The wall clock in milliseconds, for the validity of tokens. */
  readonly wallNow: () => number
}

/** `when` and `unless` of all rules, compiled once. */
export type Conditions = {
  /**
   * Returns the policies whose rule applies to a request: every condition of `when` may hold, and no condition of `unless` certainly holds.
   * A condition that several rules share is evaluated once.
   */
  applying(policies: readonly Policy[], source: ConditionSource): readonly Policy[]
  /** Returns the condition that keeps a policy from applying; undefined if the policy applies. */
  unmet(policy: Policy, source: ConditionSource): UnmetCondition | undefined
}

type UnmetCondition = { readonly field: 'when' | 'unless'; readonly condition: RuleCondition }

/** A condition that one or more rules have in the same field. */
type Shared = {
  readonly field: 'when' | 'unless'
  readonly condition: RuleCondition
  readonly compiled: CompiledCondition
  /** The number of the request that `excluded` was evaluated for. `excluded`: the condition keeps its rules from applying. */
  request: number
  excluded: boolean
}

/** The conditions of a rule, in the order of the table and in the order of their cost. */
type OfPolicy = { readonly written: readonly Shared[]; readonly byCost: readonly Shared[] }

/** Compiles the conditions of all rules. @returns undefined if no rule has conditions */
export function* compileConditions(
  rules: readonly Rule[],
  options: ConditionOptions,
): Steps<Conditions | undefined> {
  const readers = new ConditionReaders(options.wallNow)
  const shared = new Map<string, Shared>()
  const share = (field: Shared['field'], condition: RuleCondition): Shared => {
    const text = `${field} ${JSON.stringify(condition)}`
    const known = shared.get(text)
    if (known) return known
    const compiled = compileCondition(condition, readers, options.files)
    const made = { field, condition, compiled, request: 0, excluded: false }
    shared.set(text, made)
    return made
  }
  const ofPolicies = new Map<Policy, OfPolicy>()
  for (const { policy, when = [], unless = [], overrides = [] } of rules) {
    yield
    if (when.length === 0 && unless.length === 0) continue
    const written = [
      ...when.map((condition) => share('when', condition)),
      ...unless.map((condition) => share('unless', condition)),
    ]
    const own = { written, byCost: written.toSorted((one, other) => one.compiled.cost - other.compiled.cost) }
    for (const each of [policy, ...overrides.map((override) => override.policy)]) ofPolicies.set(each, own)
  }
  if (ofPolicies.size === 0) return undefined

  let request = 0
  const excludes = (one: Shared, source: ConditionSource): boolean => {
    if (one.request !== request) {
      one.excluded = one.field === 'when' ? !one.compiled.mayHold(source) : one.compiled.mustHold(source)
      one.request = request
    }
    return one.excluded
  }
  const applies = (policy: Policy, source: ConditionSource): boolean => {
    const own = ofPolicies.get(policy)
    if (own) for (const one of own.byCost) if (excludes(one, source)) return false
    return true
  }
  return {
    applying(policies, source) {
      request += 1
      const first = policies.findIndex((policy) => !applies(policy, source))
      if (first === -1) return policies
      return policies.filter((policy, at) => at < first || (at > first && applies(policy, source)))
    },
    unmet(policy, source) {
      request += 1
      return ofPolicies.get(policy)?.written.find((one) => excludes(one, source))
    },
  }
}
