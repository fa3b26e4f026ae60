import { reservedUnits, type Policy } from '../../../../policy.ts'
import type { Charge } from '../../../limiter.ts'
import { keyOf, type RedisPolicy } from '../keys.ts'
import type { RedisScript } from '../run-script.ts'
import { decideScript } from './decide.ts'
import { PlainArguments } from './decide-plain.ts'
import { PolicyArguments } from './policy-arguments.ts'

/** A command that decides requests. */
export type DecisionCommand = {
  readonly script: RedisScript
  readonly keys: readonly string[]
  readonly args: readonly string[]
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
  return plainCommandOf(requests, describe) ?? anyCommandOf(requests, describe, nextName)
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
      if (!description.plain) return undefined
      policies.push(description)
      keys.push(keyOf(description, partitionKey))
    }
    plain.add(policies)
  }
  return { keys, ...plain.toCommand() }
}

function anyCommandOf(
  requests: readonly (readonly Charge[])[],
  describe: (policy: Policy) => RedisPolicy,
  nextName: () => string,
): DecisionCommand {
  const keys: string[] = []
  const policies = new PolicyArguments()
  const asked: string[] = []
  for (const charges of requests) {
    asked.push(String(charges.length))
    for (const { policy, partitionKey, units } of charges) {
      const description = describe(policy)
      keys.push(keyOf(description, partitionKey))
      asked.push(policies.numberOf(description))
      if (description.algorithm.countsInFlight) asked.push(nextName())
      else if (description.takesUnits) asked.push(String(units ?? reservedUnits(policy)))
    }
  }
  return { script: decideScript(policies.algorithms), keys, args: [...policies.toArguments(), ...asked] }
}
