import type { Policy } from '../../../../policy.ts'
import { unitsOf, type Charge } from '../../../limiter.ts'
import { keyOf, planKeyUnder, type RedisPolicy } from '../keys.ts'
import {
  runScript,
  withUndeclaredKeys,
  type RedisClient,
  type RedisNode,
  type RedisScript,
} from '../run-script.ts'
import { commandOf } from '../scripts/command.ts'
import { PolicyArguments } from '../scripts/policy-arguments.ts'
import { settleScript } from '../scripts/settle.ts'
import type { Counted } from './cross-slot.ts'

/** The connection and scripts of the commands. */
export type CommandContext = {
  readonly redis: RedisClient
  readonly describe: (policy: Policy) => RedisPolicy
  /** Called with the script of a decision before it is sent. */
  readonly useScript: (script: RedisScript) => void
  /** Makes a name for a request that is in flight from now on. */
  readonly nextName: () => string
}

/**
 * Sends one command that decides requests, and resolves to its reply in the form of `RemoteCounters.ask`.
 *
 * @param isAwaited called before the text of a script is sent, because Redis does not have the script
 * @param node the node of a cluster that has the counters of all these requests; without it, the command goes to the node of its first key
 */
export async function sendDecision(
  { redis, describe, useScript, nextName }: CommandContext,
  requests: readonly (readonly Charge[])[],
  isAwaited: () => boolean,
  node?: RedisNode,
): Promise<readonly unknown[]> {
  const { script, keys, args, readReply } = commandOf(requests, describe, nextName)
  useScript(script)
  const reply = node
    ? await runScript(node, withUndeclaredKeys(script), 0, [String(keys.length), ...keys, ...args], isAwaited)
    : await runScript(redis, script, keys.length, [...keys, ...args], isAwaited)
  if (!Array.isArray(reply)) throw new TypeError('unexpected reply from Redis: not an array')
  return readReply(reply)
}

/** Takes back the counted units of a charge. Rejects if Redis does not confirm this; the units may then stay counted. */
export function takeBack(
  { redis, describe }: CommandContext,
  { charge, leftMs, countedAt, ticket }: Counted,
): Promise<unknown> {
  const { policy, partitionKey } = charge
  const description = describe(policy)
  const counted = description.takesUnits
    ? String(ticket)
    : description.algorithm.redis.ticketOf(leftMs, countedAt)
  const policies = new PolicyArguments()
  const settled = [policies.numberOf(description), counted, String(unitsOf(charge))]
  const keyAndArguments = [keyOf(description, partitionKey), ...policies.toArguments(), ...settled]
  return runScript(redis, settleScript, 1, keyAndArguments)
}

/** The name of the client's plan, which may be any text; empty without one. */
export async function readPlan(
  { redis, describe }: CommandContext,
  { policy, partitionKey }: Charge,
): Promise<string> {
  return (await redis.get(planKeyUnder(describe(policy), partitionKey))) ?? ''
}
