import { reservedUnits, type Policy } from '../../../../policy.ts'
import type { Charge } from '../../../limiter.ts'
import { keyOf, planKeyOf, type RedisPolicy } from '../keys.ts'
import type { RedisScript } from '../run-script.ts'
import { decideByPlansScript, decideScript } from './decide.ts'
import { PlainArguments } from './decide-plain.ts'
import { decideSingleByPlansScript, singleByPlansArguments } from './decide-plain-plans.ts'
import { PolicyArguments } from './policy-arguments.ts'

/** A command that decides requests. */
export type DecisionCommand = {
  readonly script: RedisScript
  readonly keys: readonly string[]
  readonly args: readonly string[]
  /** How many of the keys are counters; behind them are those of plans. */
  readonly chargeCount: number
}

/**
 * The command that decides these requests: that of plain fixed windows where all their charges are such, as mostly.
 *
 * @param nextName for each request in flight, as `Leases` has it
 */
export function commandOf(
  requests: readonly (readonly Charge[])[],
  describe: (policy: Policy) => RedisPolicy,
  nextName: () => string,
): DecisionCommand {
  return (
    plainCommandOf(requests, describe) ??
    singleByPlansCommandOf(requests, describe) ??
    anyCommandOf(requests, describe, nextName)
  )
}

function plainCommandOf(
  requests: readonly (readonly Charge[])[],
  describe: (policy: Policy) => RedisPolicy,
): DecisionCommand | undefined {
  const keys: string[] = []
  const plain = new PlainArguments()
  for (const charges of requests) {
    const policies: RedisPolicy[] = []
    for (const { policy, partitionKey } of charges) {
      const description = describe(policy)
      if (!description.plain || description.plans !== undefined) return undefined
      policies.push(description)
      keys.push(keyOf(description, partitionKey))
    }
    plain.add(policies)
  }
  return { keys, chargeCount: keys.length, ...plain.toCommand() }
}

/** Of requests that are one unit of one fixed window each, some with the plans of clients. */
function singleByPlansCommandOf(
  requests: readonly (readonly Charge[])[],
  describe: (policy: Policy) => RedisPolicy,
): DecisionCommand | undefined {
  const keys: string[] = []
  const planKeys: string[] = []
  const policies: RedisPolicy[] = []
  for (const [charge, ...others] of requests) {
    if (!charge || others.length > 0) return undefined
    const description = describe(charge.policy)
    if (!description.plain) return undefined
    keys.push(keyOf(description, charge.partitionKey))
    if (description.plans !== undefined) planKeys.push(planKeyOf(description.keyPrefix, charge.partitionKey))
    policies.push(description)
  }
  const args = singleByPlansArguments(policies)
  return { script: decideSingleByPlansScript, keys: [...keys, ...planKeys], chargeCount: keys.length, args }
}

function anyCommandOf(
  requests: readonly (readonly Charge[])[],
  describe: (policy: Policy) => RedisPolicy,
  nextName: () => string,
): DecisionCommand {
  const keys: string[] = []
  const planKeys: string[] = []
  const policies = new PolicyArguments()
  const asked: string[] = []
  for (const charges of requests) {
    asked.push(String(charges.length))
    for (const { policy, partitionKey, units } of charges) {
      const description = describe(policy)
      keys.push(keyOf(description, partitionKey))
      if (description.plans !== undefined) planKeys.push(planKeyOf(description.keyPrefix, partitionKey))
      asked.push(policies.numberOf(description))
      if (description.algorithm.countsInFlight) asked.push(nextName())
      else if (description.takesUnits) asked.push(String(units ?? reservedUnits(policy)))
    }
  }
  const chargeCount = keys.length
  if (planKeys.length === 0)
    return {
      script: decideScript(policies.algorithms),
      keys,
      chargeCount,
      args: [...policies.toArguments(), ...asked],
    }
  return {
    script: decideByPlansScript(policies.algorithms),
    keys: [...keys, ...planKeys],
    chargeCount,
    args: [...policies.toArguments(), ...policies.toPlans(), String(chargeCount), ...asked],
  }
}
