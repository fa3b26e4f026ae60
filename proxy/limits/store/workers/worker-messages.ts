import type { Policy } from '../../../policy.ts'
import type { Ticket } from '../../limiter.ts'

/** One end of a channel between two processes of this machine, such as that of `node:cluster`. */
export type LimiterPort = {
  /**
   * May throw if the other process is gone.
   *
   * @returns false while messages are buffered in this process because the other does not read them
   */
  send(message: object): boolean | undefined
  /** Calls back with each message that arrives, including those of other users of the channel. */
  listen(receive: (message: unknown) => void): void
}

/**
 * One question for several requests, each a list of policy, partition key, policy, partition key, … A policy is written as
 * `nameOf` writes it, followed by a space and the units to reserve if these differ from the policy's.
 */
export type Question = {
  readonly limiter: 'ask'
  readonly id: number
  readonly requests: readonly (readonly string[])[]
}

/** The costs of a worker's requests, in the order in which they ended. */
export type Settlements = { readonly limiter: 'settle'; readonly settled: readonly Settlement[] }

/** Policy name, partition key, reserved units, ticket, cost in units. */
export type Settlement = readonly [string, string, number, Ticket, number]

/** Tells a worker that a client was reset, under one policy or under all: it drops what it has cached about the client. */
export type ResetMessage = {
  readonly limiter: 'reset'
  readonly policyName?: string
  readonly partitionKey: string
}

/**
 * `reply` begins with the values that `RemoteCounters.ask` describes. If anything was reserved, or a client has a stored plan, a value
 * that is ignored and a ticket for each charge follow, 0 for a charge without one. If a client has a stored plan, the last value is an
 * array with the name of the plan for each charge, empty for a charge without one.
 */
export type Answer = {
  readonly limiter: 'answer'
  readonly id: number
  readonly reply: readonly (number | string | readonly string[])[]
}

/** Follows the name of a policy whose request has no place to wait. */
export const MAY_NOT_WAIT = '!'

/**
 * Returns the name of the rule, followed by everything that distinguishes this policy from others of the rule: `#` and the number of the
 * override, `@` and the revision of the table, `~` and the plan, `=` and a quota that was set at run time, `!` if the request may not wait.
 */
export function nameOf(policy: Policy): string {
  const { name, override, plan, isSetAtRunTime, quota, revision, mayWait } = policy
  let written = override === undefined ? name : `${name}#${override}`
  if (revision !== undefined) written += `@${revision}`
  if (plan !== undefined) written += `~${plan}`
  if (isSetAtRunTime) written += `=${quota}`
  return mayWait === false ? `${written}${MAY_NOT_WAIT}` : written
}

// These functions check the kind of a message, because other code uses the channel, too. They check nothing else, because both processes
// are of the same version.

export function isQuestion(message: unknown): message is Question {
  return isOfKind(message, 'ask')
}

export function isSettlements(message: unknown): message is Settlements {
  return isOfKind(message, 'settle')
}

export function isResetMessage(message: unknown): message is ResetMessage {
  return isOfKind(message, 'reset')
}

export function isAnswer(message: unknown): message is Answer {
  return isOfKind(message, 'answer')
}

function isOfKind(message: unknown, kind: string): boolean {
  return typeof message === 'object' && message !== null && 'limiter' in message && message.limiter === kind
}
