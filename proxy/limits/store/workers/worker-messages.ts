import type { Policy } from '../../../policy.ts'
import type { Ticket } from '../../limiter.ts'

/** One end of a channel between two processes of this machine, such as that of `node:cluster`. */
export type LimiterPort = {
  /**
   * May throw where the other process is gone.
   *
   * @returns false while messages are buffered in this process because the other does not read them
   */
  send(message: object): boolean | undefined
  /** All messages that arrive, of whoever else uses the channel too. */
  listen(receive: (message: unknown) => void): void
}

/**
 * One question for several requests, each a list of policy name, partition key, policy name, partition key, … Behind a
 * name stands the number of its override after `#`, if it is one, the client's plan after `~`, and after a space the units to reserve, where they are
 * not those of the policy.
 */
export type Question = {
  readonly limiter: 'ask'
  readonly id: number
  readonly requests: readonly (readonly string[])[]
}

/** What a worker's requests have cost, in the order in which they ended. */
export type Settlements = { readonly limiter: 'settle'; readonly settled: readonly Settlement[] }

/** Policy name, partition key, reserved units, ticket, cost in units. */
export type Settlement = readonly [string, string, number, Ticket, number]

export type ResetMessage = {
  readonly limiter: 'reset'
  readonly policyName?: string
  readonly partitionKey: string
}

/**
 * For each request the values that `RemoteCounters.ask` describes. Behind them, where anything was reserved, a value that
 * is not looked at and a ticket for each charge, 0 where it has none; and behind these, where a client has a plan that was set for it, an
 * array with the name of its plan for each charge, empty where it has none.
 */
export type Answer = {
  readonly limiter: 'answer'
  readonly id: number
  readonly reply: readonly (number | string | readonly string[])[]
}

/** Behind the name of a policy whose request has no place to wait. */
export const MAY_NOT_WAIT = '!'

/** Distinguishes the limits of single clients from the rule's limit, and current limits from earlier ones. */
export function nameOf(policy: Policy): string {
  const { name, override, plan, isSetAtRunTime, quota, revision, mayWait } = policy
  let written = override === undefined ? name : `${name}#${override}`
  if (revision !== undefined) written += `@${revision}`
  if (plan !== undefined) written += `~${plan}`
  if (isSetAtRunTime) written += `=${quota}`
  return mayWait === false ? `${written}${MAY_NOT_WAIT}` : written
}

export function isQuestion(message: unknown): message is Question {
  return typeof message === 'object' && message !== null && 'limiter' in message && message.limiter === 'ask'
}

export function isSettlements(message: unknown): message is Settlements {
  return (
    typeof message === 'object' && message !== null && 'limiter' in message && message.limiter === 'settle'
  )
}

export function isResetMessage(message: unknown): message is ResetMessage {
  return (
    typeof message === 'object' && message !== null && 'limiter' in message && message.limiter === 'reset'
  )
}

export function isAnswer(message: unknown): message is Answer {
  return (
    typeof message === 'object' && message !== null && 'limiter' in message && message.limiter === 'answer'
  )
}
