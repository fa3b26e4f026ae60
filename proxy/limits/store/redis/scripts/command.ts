import { requestedUnits, type Policy } from '../../../../policy.ts'
import { unitsOf, type Charge } from '../../../limiter.ts'
import { largestQuota } from '../../../../policy/plans.ts'
import { keyOf, planKeyUnder, type RedisPolicy } from '../keys.ts'
import type { RedisScript } from '../run-script.ts'
import { decideByPlansScript, decideScript } from './decide.ts'
import { PlainArguments } from './decide-plain.ts'
import { singleByPlans, takePlaces } from './decide-plain-plans.ts'
import { nameAt } from './plans-lua.ts'
import { PolicyArguments } from './policy-arguments.ts'

/** A command that decides requests. */
export type DecisionCommand = {
  readonly script: RedisScript
  readonly keys: readonly string[]
  readonly args: readonly string[]
  /** Converts the script's reply to that of `RemoteCounters.ask`. It may return the same array. */
  readonly readReply: (reply: unknown[]) => readonly unknown[]
}

/**
 * Returns the command that decides these requests. Mostly, all their charges are plain fixed windows, which have a command of their own.
 *
 * @param nextName returns the name of each request in flight, as in `InFlightRequests`
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
  return { keys, readReply: (reply) => inMilliseconds(reply, keys.length), ...plain.toCommand() }
}

/** Returns the command for requests that each take one unit of one fixed window, some with the plans of clients. */
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
    if (description.plans !== undefined) planKeys.push(planKeyUnder(description, charge.partitionKey))
    policies.push(description)
  }
  return {
    ...singleByPlans(policies),
    keys: [...keys, ...planKeys],
    readReply(reply) {
      const places = takePlaces(reply)
      const names = policies.flatMap(({ plans }, at) =>
        plans === undefined ? [] : [nameAt(plans, places[at])],
      )
      return [...reply, 0, names]
    },
  }
}

function anyCommandOf(
  requests: readonly (readonly Charge[])[],
  describe: (policy: Policy) => RedisPolicy,
  nextName: () => string,
): DecisionCommand {
  const keys: string[] = []
  const planKeys: string[] = []
  /** The plans of the charges that read one. */
  const plansOfCharges: string[] = []
  const policies = new PolicyArguments()
  const asked: string[] = []
  for (const charges of requests) {
    asked.push(String(charges.length))
    for (const charge of charges) {
      const { policy, partitionKey } = charge
      const description = describe(policy)
      keys.push(keyOf(description, partitionKey))
      if (description.plans !== undefined) {
        planKeys.push(planKeyUnder(description, partitionKey))
        plansOfCharges.push(description.plans)
      }
      asked.push(policies.numberOf(description))
      if (description.algorithm.countsInFlight) asked.push(nextName())
      else if (description.takesUnits) asked.push(writeUnits(charge, description))
    }
  }
  const chargeCount = keys.length
  if (planKeys.length === 0)
    return {
      script: decideScript(policies.algorithms),
      keys,
      args: [...policies.toArguments(), ...asked],
      readReply: (reply) => inMilliseconds(reply, chargeCount),
    }
  return {
    script: decideByPlansScript(policies.algorithms),
    keys: [...keys, ...planKeys],
    args: [...policies.toArgumentsWithPlans(), String(chargeCount), ...asked],
    readReply(reply) {
      const places = reply.splice(reply.length - plansOfCharges.length)
      const names = plansOfCharges.map((plans, at) => nameAt(plans, places[at]))
      return [...inMilliseconds(reply, chargeCount), names]
    },
  }
}

/** The script takes at most the quota of the client's plan of units that the request states. */
function writeUnits(charge: Charge, { plans }: RedisPolicy): string {
  const { policy, units = largestQuota(policy) } = charge
  return plans !== undefined && requestedUnits(policy) ? `<=${units}` : String(unitsOf(charge))
}

/** Converts the times in a reply of `decideScript` to milliseconds. */
function inMilliseconds(reply: unknown[], charges: number): readonly unknown[] {
  for (let at = 1; at < 2 * charges; at += 2) reply[at] = Number(reply[at]) / 1000
  return reply
}
