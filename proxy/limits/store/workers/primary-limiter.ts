import type { Steps } from '../../../../shared/steps.ts'
import { readsStoredPlan } from '../../../policy/plans.ts'
import { withoutDelay, type Policy } from '../../../policy.ts'
import { withPlan, withQuota } from '../../algorithms/registry.ts'
import { countsInFlight } from '../../algorithms/registry.ts'
import type { Charge, Decision, Reservation } from '../../limiter.ts'
import { UNKNOWN_PLAN } from '../../plans/plan-store.ts'
import {
  isQuestion,
  isSettlements,
  MAY_NOT_WAIT,
  nameOf,
  type Answer,
  type LimiterPort,
  type Question,
  type ResetMessage,
  type Settlement,
} from './worker-messages.ts'

/**
 * Answers a worker's questions, in the process that has the counters.
 *
 * @param counters embedded ones, which answer at once
 * @param policies all that a worker may name; a request under any other is not decided
 */
export function serveLimiter(options: {
  readonly counters: EmbeddedCounters
  readonly policies: readonly Policy[]
  readonly port: LimiterPort
}): ServedLimiter {
  const { counters, port } = options
  const policyByName = new Map(options.policies.map((policy) => [nameOf(policy), policy]))
  /** Those that a new table does not have, and since when: requests that began before still name them. */
  const retired = new Map<string, number>()
  const inFlight = createInFlightRecord()

  function answer({ id, requests }: Question): void {
    const answers = requests.map((names) => answerRequest(names, policyByName, counters))
    const values = answers.flatMap((request) => request.values)
    const reservations = answers.flatMap((request) => request.reservations)
    for (const reservation of reservations)
      if (reservation && countsInFlight(reservation.charge.policy)) inFlight.add(reservation)
    const reply = reservations.some((reservation) => reservation !== undefined)
      ? [...values, 0, ...reservations.map((reservation) => reservation?.ticket ?? 0)]
      : values
    const plans = answers.flatMap((request) => request.plans)
    const named = plans.some((plan) => plan !== '')
      ? [...(reply.length === values.length ? [...values, 0, ...plans.map(() => 0)] : reply), plans]
      : reply
    const message: Answer = { limiter: 'answer', id, reply: named }
    try {
      port.send(message)
    } catch {
      // The worker is gone, and whoever waited there with it.
    }
  }

  function settle([name, partitionKey, units, ticket, costUnits]: Settlement): void {
    const policy = policyNamed(name, policyByName)
    if (!policy) return
    const reservation: Reservation = { charge: { policy, partitionKey }, units, isLocal: false, ticket }
    if (countsInFlight(policy) && !inFlight.remove(reservation)) return
    counters.settle(reservation, costUnits)
  }

  function* usePolicies(
    policies: readonly Policy[],
    revised: readonly string[],
    revision: number,
  ): Steps<void> {
    const nowMs = performance.now()
    for (const [name, retiredAtMs] of retired) {
      yield
      const policy = policyByName.get(name)
      if (nowMs - retiredAtMs < RETIRED_FOR_MS || (policy && inFlight.has(policy.name))) continue
      retired.delete(name)
      policyByName.delete(name)
    }
    const isRevised = new Set(revised)
    const inForce = new Set(policies)
    yield
    for (const [name, policy] of policyByName) {
      if (!inForce.has(policy) && !retired.has(name)) retired.set(name, nowMs)
      yield
    }
    for (const policy of policies) {
      if (isRevised.has(nameOf(policy))) policyByName.set(nameOf({ ...policy, revision }), policy)
      yield
    }
  }

  port.listen((message) => {
    if (isQuestion(message)) answer(message)
    else if (isSettlements(message)) message.settled.forEach(settle)
  })
  return {
    usePolicies,
    close: () => {
      for (const reservation of inFlight.takeAll()) counters.settle(reservation, 0)
    },
  }
}

type EmbeddedCounters = {
  decide(charges: readonly Charge[]): Decision
  settle(reservation: Reservation, costUnits: number): void
}

/** How long requests may go on that began under a table that has been replaced; what they settle later is not heard. */
const RETIRED_FOR_MS = 3_600_000

export type ServedLimiter = {
  /**
   * To be called before the worker has a new table.
   *
   * @param revised which of the policies are new or changed, by their names: the worker names these by the revision too
   */
  usePolicies(policies: readonly Policy[], revised: readonly string[], revision: number): Steps<void>
  /** To be called when the worker is gone: its requests in flight are over. */
  close(): void
}

type InFlightRecord = {
  add(reservation: Reservation): void
  /** Returns whether there was one. */
  remove(reservation: Reservation): boolean
  takeAll(): Reservation[]
  /** Whether any is under the rule of this name, whatever its quota is or was. */
  has(name: Policy['name']): boolean
}

/** The requests of one worker that are in flight under limits of concurrency. */
function createInFlightRecord(): InFlightRecord {
  const records = new Map<string, { readonly reservation: Reservation; count: number }>()
  const keyOf = ({ charge }: Reservation): string => `${nameOf(charge.policy)} ${charge.partitionKey}`
  return {
    add(reservation) {
      const known = records.get(keyOf(reservation))
      if (known) known.count += 1
      else records.set(keyOf(reservation), { reservation, count: 1 })
    },
    remove(reservation) {
      const known = records.get(keyOf(reservation))
      if (!known) return false
      known.count -= 1
      if (known.count === 0) records.delete(keyOf(reservation))
      return true
    },
    has: (name) => records.values().some(({ reservation }) => reservation.charge.policy.name === name),
    takeAll() {
      const all = [...records.values()]
      records.clear()
      return all.flatMap(({ reservation, count }) => Array.from({ length: count }, () => reservation))
    },
  }
}

/** Tells a worker that a client was reset: under the policy of this name, or under all. */
export function tellReset(port: LimiterPort, policyName: string | undefined, partitionKey: string): void {
  const reset: ResetMessage = {
    limiter: 'reset',
    partitionKey,
    ...(policyName === undefined ? {} : { policyName }),
  }
  try {
    port.send(reset)
  } catch {
    // The worker is gone, and what it knew of the client with it.
  }
}

/** The client's plan stands behind `~`, and a quota that was set at run time behind `=`. */
function policyNamed(name: string, policyByName: ReadonlyMap<string, Policy>): Policy | undefined {
  if (name.endsWith(MAY_NOT_WAIT)) {
    const policy = policyNamed(name.slice(0, -MAY_NOT_WAIT.length), policyByName)
    return policy && withoutDelay(policy)
  }
  const known = policyByName.get(name)
  if (known) return known
  const [planned = '', quota] = name.split('=')
  const [written = '', plan] = planned.split('~')
  const ofRule = policyByName.get(written)
  const policy = ofRule && plan !== undefined ? withPlan(ofRule, plan) : ofRule
  return policy && quota !== undefined ? withQuota(policy, Number(quota)) : policy
}

type RequestAnswer = {
  readonly values: readonly (number | string)[]
  /** For each charge: the name of the client's plan, if the policy reads it where it counts, and the client has one. */
  readonly plans: readonly string[]
  /** For each charge. */
  readonly reservations: readonly (Reservation | undefined)[]
}

function answerRequest(
  names: readonly string[],
  policyByName: ReadonlyMap<string, Policy>,
  counters: EmbeddedCounters,
): RequestAnswer {
  const charges: Charge[] = []
  for (let at = 0; at < names.length; at += 2) {
    const [name = '', units] = names[at]?.split(' ') ?? []
    const policy = policyNamed(name, policyByName)
    if (!policy) return failed(names, 'the primary process has no such policy')
    const charge = { policy, partitionKey: names[at + 1] ?? '' }
    charges.push(units === undefined ? charge : { ...charge, units: Number(units) })
  }
  const decision = counters.decide(charges)
  if (decision.outcome === 'unavailable') return failed(names, 'unavailable')
  return {
    values: decision.states.flatMap(({ exceeded, remaining, resetMs }) => [
      exceeded ? -1 : remaining,
      resetMs,
    ]),
    plans: decision.states.map(({ policy, isPlanUnknown }, at) =>
      charges[at] && readsStoredPlan(charges[at].policy)
        ? (policy.plan ?? (isPlanUnknown ? UNKNOWN_PLAN : ''))
        : '',
    ),
    reservations: decision.states.map(({ reservation }) => reservation),
  }
}

function failed(names: readonly string[], reason: string): RequestAnswer {
  return {
    values: names.map((_, index) => (index === 0 ? reason : 0)),
    plans: Array.from({ length: names.length / 2 }, () => ''),
    reservations: Array.from({ length: names.length / 2 }, () => undefined),
  }
}
