import type { Policy, Rule } from '../../../policy.ts'
import type { Charge } from '../../limiter.ts'

/** The `overrides` of rules for accounts, compiled once. */
export type AccountOverrides = {
  /** Replaces each charge's policy with that of the first override that names its account. A device has the override of its account. */
  apply(charges: readonly Charge[]): readonly Charge[]
}

/** @returns undefined if no override names an account */
export function compileAccountOverrides(rules: readonly Rule[]): AccountOverrides | undefined {
  const byRule = new Map<string, Map<string, Policy>>()
  for (const { policy, overrides = [] } of rules)
    for (const { accounts = [], policy: override } of overrides)
      for (const key of accounts) {
        const byKey = byRule.get(policy.name) ?? new Map<string, Policy>()
        byRule.set(policy.name, byKey)
        if (!byKey.has(key)) byKey.set(key, override)
      }
  if (byRule.size === 0) return undefined
  return {
    apply: (charges) =>
      charges.map((charge) => {
        const { policy, partitionKey, device } = charge
        const override = byRule.get(policy.name)?.get(device?.accountKey ?? partitionKey)
        const isFirst = (policy.override ?? Infinity) > (override?.override ?? Infinity)
        return override && isFirst ? { ...charge, policy: override } : charge
      }),
  }
}
