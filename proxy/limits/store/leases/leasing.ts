import type { TableUse } from '../../../telemetry/telemetry.ts'
import { isReserved } from '../../algorithms/registry.ts'
import { chargesOfStates, type Charge, type Decision, type Limiter, type PolicyState } from '../../limiter.ts'
import { UnitSupply, type TakenFromClient, type UnitSupplyOptions } from './unit-supply.ts'

/** The charges of a request that the shared counters have to decide; and the units taken for the other charges, at the indexes of these. */
type Divided = {
  readonly rest: readonly Charge[]
  readonly taken: readonly (TakenFromClient | undefined)[] | undefined
}

/**
 * Decides requests under policies with `lease` in this process, with units that it has taken ahead from the shared counters. These have
 * counted the units already, so no more than the quota is ever admitted. If no units are held for a request, the shared counters decide
 * it; their answers also show which clients are worth a lease.
 *
 * If a request has several charges, those for which units are held are decided here. The shared counters decide the others together; if
 * they refuse, the units are put back.
 */
export class Leasing {
  readonly #supply: UnitSupply
  readonly #ask: Limiter['decide']
  readonly #now: () => number

  /** @param options.ask decides with the shared counters */
  constructor(options: UnitSupplyOptions & { readonly ask: Limiter['decide'] }) {
    this.#supply = new UnitSupply(options)
    this.#ask = options.ask
    this.#now = options.now
  }

  /** Implements `Limiter.decide`. */
  decide(charges: readonly Charge[]): Decision | Promise<Decision> {
    const divided = this.#divide(charges)
    if (divided.rest.length === 0) return this.#decided(charges, divided, { outcome: 'allowed', states: [] })
    const answer = this.#ask(divided.rest)
    return answer instanceof Promise
      ? answer.then((decision) => this.#decided(charges, divided, decision))
      : this.#decided(charges, divided, answer)
  }

  /** Gives back all units that are held. Called when the table of limits has changed, and before the process ends. */
  giveBackAll(): void {
    this.#supply.giveBackAll()
  }

  readUse(): TableUse {
    return this.#supply.readUse()
  }

  #divide(charges: readonly Charge[]): Divided {
    const nowMs = this.#now()
    let taken: (TakenFromClient | undefined)[] | undefined
    for (const [index, charge] of charges.entries()) {
      const each = charge.policy.lease === undefined ? undefined : this.#supply.take(charge, nowMs)
      if (each) (taken ??= [])[index] = each
    }
    return { rest: taken ? charges.filter((_, index) => !taken[index]) : charges, taken }
  }

  /** @param decision the decision of the shared counters about `rest` */
  #decided(charges: readonly Charge[], { rest, taken }: Divided, decision: Decision): Decision {
    if (decision.outcome === 'allowed' && !decision.withoutStore) this.#supply.observe(rest, decision.states)
    if (!taken) return this.#withHeldUnits(rest, decision)
    const isAllowed = decision.outcome === 'allowed'
    for (const each of taken) {
      if (each && isAllowed) this.#supply.use(each)
      else if (each) this.#supply.putBack(each)
    }
    const answer = this.#withHeldUnits(rest, decision)
    if (answer.outcome === 'unavailable') return answer
    const asked = new Map(
      chargesOfStates(rest, answer.states).map((charge, at) => [charge, answer.states[at]]),
    )
    const nowMs = this.#now()
    const states = charges.flatMap((charge, at): PolicyState[] => {
      const each = taken[at]
      const state = each ? stateOf(charge, each, isAllowed, nowMs) : asked.get(charge)
      return state ? [state] : []
    })
    return { ...answer, states }
  }

  /** Adds the units held here to the remaining quota. The shared counters have counted these units, but they are not used yet. */
  #withHeldUnits(rest: readonly Charge[], decision: Decision): Decision {
    if (decision.outcome === 'unavailable' || !hasLease(rest)) return decision
    const nowMs = this.#now()
    const counted = chargesOfStates(rest, decision.states)
    const states = decision.states.map((state, at) => {
      const charge = counted[at]
      const held = charge?.policy.lease === undefined ? 0 : this.#supply.heldFor(charge, nowMs)
      return held === 0
        ? state
        : { ...state, remaining: Math.min(state.policy.quota, state.remaining + held) }
    })
    return { ...decision, states }
  }
}

/** @param isCounted whether the request has passed, and its units are used */
function stateOf(
  charge: Charge,
  { client, held, units }: TakenFromClient,
  isCounted: boolean,
  nowMs: number,
): PolicyState {
  const { policy } = client.charge
  const state = {
    policy,
    exceeded: false,
    remaining: client.held.remaining + client.held.unusedAt(nowMs),
    resetMs: Math.max(0, held.windowEndsAtMs - nowMs),
    ...(client.isPlanUnknown && { isPlanUnknown: true as const }),
  }
  if (!isCounted || !isReserved(policy)) return state
  const reserved = { charge: { ...charge, policy }, units, isLocal: false, ticket: held.lease.ticket }
  return { ...state, reservation: reserved }
}

/** Whether units may be held for some charge of the request. */
export function hasLease(charges: readonly Charge[]): boolean {
  for (const { policy } of charges) if (policy.lease !== undefined) return true
  return false
}
