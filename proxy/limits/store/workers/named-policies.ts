import type { Steps } from '../../../../shared/steps.ts'
import { withoutDelay, type Policy } from '../../../policy.ts'
import { withPlan, withQuota } from '../../algorithms/registry.ts'
import { MAY_NOT_WAIT, nameOf } from './worker-messages.ts'

/** How long requests that began under a replaced table may continue. Later settlements by such requests are ignored. */
const RETIRED_FOR_MS = 3_600_000

/** The policies that a worker may name: those of the current table and, for an hour, those of earlier tables. */
export class NamedPolicies {
  readonly #byName: Map<string, Policy>
  /** Policies that the current table does not have, and when they were retired. Requests that began before still name them. */
  readonly #retired = new Map<string, number>()

  constructor(policies: readonly Policy[]) {
    this.#byName = new Map(policies.map((policy) => [nameOf(policy), policy]))
  }

  /** Finds a policy by its name. The client's plan follows `~`, and a quota that was set at run time follows `=`. */
  find(name: string): Policy | undefined {
    if (name.endsWith(MAY_NOT_WAIT)) {
      const policy = this.find(name.slice(0, -MAY_NOT_WAIT.length))
      return policy && withoutDelay(policy)
    }
    const known = this.#byName.get(name)
    if (known) return known
    const [planned = '', quota] = name.split('=')
    const [written = '', plan] = planned.split('~')
    const ofRule = this.#byName.get(written)
    const policy = ofRule && plan !== undefined ? withPlan(ofRule, plan) : ofRule
    return policy && quota !== undefined ? withQuota(policy, Number(quota)) : policy
  }

  /**
   * @param revised the names of the policies that are new or changed, to which the worker adds the revision
   * @param isUsed whether a retired policy has to stay although its hour is over
   */
  *replace(
    policies: readonly Policy[],
    revised: readonly string[],
    revision: number,
    isUsed: (policy: Policy) => boolean,
  ): Steps<void> {
    const nowMs = performance.now()
    yield* this.#dropRetired(nowMs, isUsed)
    const isRevised = new Set(revised)
    const active = new Set(policies)
    yield
    for (const [name, policy] of this.#byName) {
      if (!active.has(policy) && !this.#retired.has(name)) this.#retired.set(name, nowMs)
      yield
    }
    for (const policy of policies) {
      if (isRevised.has(nameOf(policy))) this.#byName.set(nameOf({ ...policy, revision }), policy)
      yield
    }
  }

  *#dropRetired(nowMs: number, isUsed: (policy: Policy) => boolean): Steps<void> {
    for (const [name, retiredAtMs] of this.#retired) {
      yield
      const policy = this.#byName.get(name)
      if (nowMs - retiredAtMs < RETIRED_FOR_MS || (policy && isUsed(policy))) continue
      this.#retired.delete(name)
      this.#byName.delete(name)
    }
  }
}
