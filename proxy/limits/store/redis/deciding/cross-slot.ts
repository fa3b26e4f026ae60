import { refusesOver } from '../../../../policy.ts'
import { readsStoredPlan } from '../../../../policy/plans.ts'
import type { CountedState } from '../../../algorithms/algorithm.ts'
import { countsInFlight, stateWithout, takesUnits } from '../../../algorithms/registry.ts'
import { unitsOf, type Charge } from '../../../limiter.ts'
import { withStoredPlan } from '../../../plans/stored-plans.ts'
import { readPlanNames } from '../../store-replies.ts'
import { isMoving } from '../errors.ts'

export type ClusterNodes = {
  /**
   * Sends one command for charges whose counters are all on one node. Its reply is that of `RemoteCounters.ask`, with the time of
   * counting before the tickets, if the clock was read.
   */
  readonly askNode: (charges: readonly Charge[]) => Promise<readonly unknown[]>
  /**
   * Takes the counted units back from the charge's counter, as its ticket says. Without a ticket, they are taken from the window
   * that had `leftMs` left, or from the time `countedAt`.
   */
  readonly giveBack: (counted: Counted) => Promise<unknown>
  /** The name of the plan that was set for the client; empty without one. */
  readonly readPlan: (charge: Charge) => Promise<string>
  /** Called before charges are decided in parts: for a moment, their counters may hold too much. */
  readonly split: (charges: readonly Charge[]) => void
}

export type Counted = {
  readonly charge: Charge
  readonly leftMs: number
  readonly countedAt: unknown
  readonly ticket: unknown
}

/**
 * Asks a cluster about one request. Counters of one partition key share a hash slot, so a request whose rules count by
 * the same key, as most do, is one command and atomic. If its rules count by different keys (an address here, a header
 * there), their counters may be on different nodes, and no command can decide about all of them. Each part is then decided
 * by itself, and if one refuses, the counts of the others are given back. Until then, a client may find less quota left
 * than there is, and be refused; more than the quota never passes. If a part cannot be decided, the request is decided
 * without the store, and the counts of the other parts are given back as well.
 *
 * While a slot moves to another node, a node accepts a command about several of its counters only if it has all of them.
 * If no node does, each charge is such a part.
 */
export async function askAcrossSlots(
  charges: readonly Charge[],
  nodes: ClusterNodes,
): Promise<readonly unknown[]> {
  const byKey = [...Map.groupBy(charges, ({ partitionKey }) => partitionKey).values()]
  if (byKey.length > 1) nodes.split(charges)
  const answers = await allOrNone(
    byKey.map((part) => askPart(part, nodes)),
    nodes,
  )
  const [only] = answers
  if (only && answers.length === 1) return only.reply

  const parts = answers.map(({ part }) => part)
  const replies = answers.map(({ reply }) => reply)
  const refusals = parts.map((part, index) => isRefusal(part, replies[index] ?? []))
  const isRefused =
    refusals.includes(true) || !parts.every((part, index) => isDecided(part, replies[index] ?? []))
  const reply: unknown[] = Array.from({ length: 2 * charges.length })
  const tickets = new Map<Charge, unknown>()
  const plans = new Map<Charge, unknown>()
  const givenBack: Promise<unknown>[] = []
  for (const [index, part] of parts.entries()) {
    const answer = { part, reply: replies[index] ?? [] }
    for (const [at, charge] of part.entries()) {
      let [left, resetMs] = [answer.reply[2 * at], answer.reply[2 * at + 1]]
      const counted = countedAt(answer, at)
      if (isRefused && !refusals[index] && counted) {
        givenBack.push(nodes.giveBack(counted))
        ;({ remaining: left, resetMs } = stateBefore(counted, Number(left)))
      }
      if (takesUnits(charge.policy)) tickets.set(charge, ticketAt(answer, at))
      if (readsStoredPlan(charge.policy)) plans.set(charge, planAt(answer, at))
      const place = 2 * charges.indexOf(charge)
      reply[place] = left
      reply[place + 1] = resetMs
    }
  }
  if (tickets.size > 0 || plans.size > 0)
    reply.push(0, ...charges.flatMap((charge) => (tickets.has(charge) ? [tickets.get(charge)] : [])))
  if (plans.size > 0)
    reply.push(charges.filter((charge) => plans.has(charge)).map((charge) => plans.get(charge)))
  // A refund that fails leaves a count too high, which is the side to err on.
  await Promise.allSettled(givenBack)
  return reply
}

type Answer = { readonly part: readonly Charge[]; readonly reply: readonly unknown[] }

async function askPart(part: readonly Charge[], nodes: ClusterNodes): Promise<readonly Answer[]> {
  const { split } = nodes
  try {
    return [{ part, reply: await nodes.askNode(part) }]
  } catch (error) {
    if (!isMoving(error)) throw error
    const [only] = part
    if (only && part.length === 1) {
      if (!readsStoredPlan(only.policy)) throw error
      return [{ part, reply: await askInTwo(only, nodes) }]
    }
    split(part)
    return allOrNone(
      part.map((charge) => askPart([charge], nodes)),
      nodes,
    )
  }
}

/** Asks for the plan first, because it may be on another node than the counter. */
async function askInTwo(charge: Charge, { askNode, readPlan }: ClusterNodes): Promise<readonly unknown[]> {
  const plan = await readPlan(charge)
  const chosen = withStoredPlan(charge, plan)
  // The client has none of the policy's plans. With an empty name, the plan is not read again.
  const asked = chosen === charge ? { ...charge, policy: { ...charge.policy, plan: '' } } : chosen
  const reply = await askNode([asked])
  return [...reply, ...(reply.length === 2 ? [0] : []), [plan]]
}

/**
 * Resolves to all answers, or rejects with the first error. Units that other parts count, sooner or later, are then given back.
 */
async function allOrNone(
  asked: readonly Promise<readonly Answer[]>[],
  nodes: ClusterNodes,
): Promise<readonly Answer[]> {
  try {
    return (await Promise.all(asked)).flat()
  } catch (error) {
    for (const answers of asked) {
      answers
        .then((counted) => Promise.all(counted.flatMap((answer) => giveAllBack(answer, nodes))))
        // Nothing was counted there, or it stays counted, which is the side to err on.
        .catch(() => undefined)
    }
    throw error
  }
}

function giveAllBack(answer: Answer, { giveBack }: ClusterNodes): Promise<unknown>[] {
  return answer.part.flatMap((_, at) => {
    const counted = countedAt(answer, at)
    return counted ? [giveBack(counted)] : []
  })
}

/** Returns the count that a node has made for the charge at this index; undefined if nothing was counted. */
function countedAt({ part, reply }: Answer, at: number): Counted | undefined {
  const asked = part[at]
  const charge = asked && withStoredPlan(asked, planAt({ part, reply }, at))
  const leftMs = reply[2 * at + 1]
  if (!charge || !isCounted(reply[2 * at]) || typeof leftMs !== 'number') return undefined
  return { charge, leftMs, countedAt: reply[2 * part.length], ticket: ticketAt({ part, reply }, at) }
}

function ticketAt({ part, reply }: Answer, at: number): unknown {
  const charge = part[at]
  if (!charge || !takesUnits(charge.policy)) return undefined
  const before = part.slice(0, at).filter(({ policy }) => takesUnits(policy)).length
  return reply[2 * part.length + 1 + before]
}

function planAt({ part, reply }: Answer, at: number): unknown {
  const before = part.slice(0, at).filter(({ policy }) => readsStoredPlan(policy)).length
  return part[at] && readsStoredPlan(part[at].policy)
    ? readPlanNames(reply)?.drop(before).next().value
    : undefined
}

/** The state of a counter without the units that are given back. */
function stateBefore({ charge, leftMs }: Counted, remaining: number): CountedState {
  const units = countsInFlight(charge.policy) ? 1 : unitsOf(charge)
  return stateWithout(charge.policy, units, { remaining, resetMs: leftMs })
}

function isRefusal(charges: readonly Charge[], reply: readonly unknown[]): boolean {
  return charges.some(({ policy }, at) => refusesOver(policy) && isExceeded(reply[2 * at]))
}

function isDecided(charges: readonly Charge[], reply: readonly unknown[]): boolean {
  return charges.every((_, at) => typeof reply[2 * at] === 'number')
}

function isCounted(left: unknown): left is number {
  return typeof left === 'number' && left >= 0
}

function isExceeded(left: unknown): boolean {
  return typeof left === 'number' && left < 0
}
