import { reservedUnits, type Policy } from '../../../policy.ts'
import type { TableUse, Telemetry } from '../../../telemetry/telemetry.ts'
import { isReserved } from '../../algorithms/registry.ts'
import { chargesOfStates, type Charge, type Decision, type Limiter, type PolicyState } from '../../limiter.ts'
import type { HeldLease, TakenUnits } from './held-units.ts'
import type { LeaseStore, WantedUnits } from './lease-store.ts'
import { LeasedClients, type LeasedClient } from './leased-clients.ts'

export type Leasing = Pick<Limiter, 'decide'> & {
  /** Gives back all units that are held. Called when the table of limits has changed, and before the process ends. */
  giveBackAll(): void
  readUse(): TableUse
}

/** A lease has to be enough for so many requests, and so many have to come in 100 ms: with fewer it saves nothing. */
const MIN_REQUESTS = 10
/** `auto` takes no more than this share of the remaining quota: a tenth. */
const AUTO_SHARE = 10
/** How soon a lease is asked for again where too little was left, or the store did not answer. */
const RETRY_MS = 100
const SWEEP_MS = 50
/** A client whose plan is read by the store is asked about at least so often. */
const PLAN_KNOWN_MS = 250
const FORGET_AFTER_MS = 1000
const MAX_CLIENTS = 10_000

/**
 * Decides requests under policies with `lease` in this process, by units that it has taken ahead from the shared counters: these have
 * counted them, so that no more than the quota is ever admitted. A request that no unit is held for is decided by the shared
 * counters, which also is how it is known which clients are worth a lease.
 *
 * Of a request with several charges those are decided here that units are held for. The others are asked for together; where they are
 * refused, the units are put back.
 *
 * @param options.ask decides by the shared counters
 * @param options.now milliseconds of a monotonic clock
 * @param options.later calls back after so many milliseconds
 */
export function createLeasing(options: {
  readonly store: LeaseStore
  readonly ask: Limiter['decide']
  readonly now: () => number
  readonly later?: (task: () => void, ms: number) => void
  readonly telemetry: Pick<Telemetry, 'leaseChanged'>
  readonly maxClients?: number
}): Leasing {
  const { store, ask, now, telemetry } = options
  const later = options.later ?? ((task: () => void, ms: number) => void setTimeout(task, ms).unref())
  const clients = new LeasedClients(options.maxClients ?? MAX_CLIENTS)
  let isSweeping = false

  function take(charge: Charge, nowMs: number): Taken | undefined {
    const client = clients.find(charge)
    if (!client) return undefined
    const taken = client.held.take(unitsOf(charge), nowMs)
    return taken && { client, ...taken }
  }

  /** A request passes that was decided here, or by the shared counters. */
  function noteUse(client: LeasedClient, units: number, nowMs: number): void {
    client.held.use.add(units, nowMs)
    takeAhead(client, units, nowMs)
  }

  /** @param units of the request that has passed */
  function takeAhead(client: LeasedClient, units: number, nowMs: number): void {
    if (client.isTaking || nowMs < client.notBeforeMs || !store.isAnswering(client.charge)) return
    const wanted = wantedUnits(client, units, nowMs)
    if (!wanted) return
    client.isTaking = true
    store
      .take(client.charge, () => wantedUnits(client, units, now()) ?? wanted)
      .then(
        (lease) => {
          client.isTaking = false
          if (lease.units === 0) {
            client.notBeforeMs = nowMs + Math.min(RETRY_MS, lease.leftMs)
            return
          }
          telemetry.leaseChanged(client.charge.policy, 'taken', lease.units)
          const held = client.held.add(lease, nowMs)
          if (client.isGone) giveBack(client, client.held.removeAll())
          else if (held.endsAtMs <= now()) giveBackEnded(client)
        },
        () => {
          client.isTaking = false
          client.notBeforeMs = now() + RETRY_MS
        },
      )
  }

  /** What the charges that were asked for say about their clients. */
  function hear(charges: readonly Charge[], states: readonly PolicyState[]): void {
    const nowMs = now()
    const counted = chargesOfStates(charges, states)
    for (const [index, state] of states.entries()) {
      const charge = counted[index]
      if (charge?.policy.lease === undefined || state.exceeded) continue
      const client = clients.find(charge) ?? clients.add(charge, nowMs)
      if (!client) continue
      if (client.charge.policy !== state.policy) {
        // Another plan: the units were counted with the quota of the one before.
        giveBack(client, client.held.removeAll())
        client.charge = { ...client.charge, policy: state.policy }
      }
      client.isPlanUnknown = state.isPlanUnknown === true
      client.heardAtMs = nowMs
      noteUse(client, unitsOf(charge), nowMs)
      if (!isSweeping) sweepLater()
    }
  }

  function decided(charges: readonly Charge[], { rest, taken }: Divided, decision: Decision): Decision {
    if (decision.outcome === 'allowed' && !decision.withoutStore) hear(rest, decision.states)
    if (!taken) return decision
    const isAllowed = decision.outcome === 'allowed'
    for (const each of taken) if (each) (isAllowed ? use : putBack)(each)
    if (decision.outcome === 'unavailable') return decision
    const asked = new Map(
      chargesOfStates(rest, decision.states).map((charge, at) => [charge, decision.states[at]]),
    )
    const states = charges.flatMap((charge, at): PolicyState[] => {
      const each = taken[at]
      const state = each ? stateOf(charge, each, isAllowed) : asked.get(charge)
      return state ? [state] : []
    })
    return { ...decision, states }
  }

  function use({ client, units }: Taken): void {
    telemetry.leaseChanged(client.charge.policy, 'used', units)
    noteUse(client, units, now())
  }

  function putBack({ client, held, units }: Taken): void {
    held.unused += units
    if (held.isOver) giveBack(client, [held])
  }

  /** @param isCounted whether the request has passed, and its units are used */
  function stateOf(charge: Charge, { client, held, units }: Taken, isCounted: boolean): PolicyState {
    const nowMs = now()
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

  function giveBack({ charge }: LeasedClient, leases: readonly HeldLease[]): void {
    for (const held of leases) {
      const units = held.unused
      held.unused = 0
      if (units === 0 || held.windowEndsAtMs <= now()) continue
      telemetry.leaseChanged(charge.policy, 'returned', units)
      store.giveBack(charge, held.lease, units)
    }
  }

  function giveBackEnded(client: LeasedClient): void {
    giveBack(client, client.held.removeEnded(now()))
  }

  function sweepLater(): void {
    isSweeping = true
    later(() => {
      const nowMs = now()
      clients.removeIf((client) => {
        giveBackEnded(client)
        return client.held.isEmpty && !client.isTaking && nowMs - client.heardAtMs > FORGET_AFTER_MS
      })
      if (clients.size > 0) sweepLater()
      else isSweeping = false
    }, SWEEP_MS)
  }

  return {
    decide(charges) {
      const nowMs = now()
      let taken: (Taken | undefined)[] | undefined
      for (const [index, charge] of charges.entries()) {
        const each = isLeased(charge) ? take(charge, nowMs) : undefined
        if (each) (taken ??= [])[index] = each
      }
      const rest = taken ? charges.filter((_, index) => !taken[index]) : charges
      if (rest.length === 0) return decided(charges, { rest, taken }, { outcome: 'allowed', states: [] })
      const answer = ask(rest)
      return answer instanceof Promise
        ? answer.then((decision) => decided(charges, { rest, taken }, decision))
        : decided(charges, { rest, taken }, answer)
    },
    giveBackAll() {
      clients.removeIf((client) => {
        giveBack(client, client.held.removeAll())
        return true
      })
      store.flush()
    },
    readUse: () => clients.readUse(),
  }
}

type Taken = TakenUnits & { readonly client: LeasedClient }

/** The charges of a request that have to be asked for, and by the places of the others the units taken for these. */
type Divided = {
  readonly rest: readonly Charge[]
  readonly taken: readonly (Taken | undefined)[] | undefined
}

function isLeased({ policy }: Charge): boolean {
  return policy.lease !== undefined
}

/** Whether units may be held for some charge of the request. */
export function hasLease(charges: readonly Charge[]): boolean {
  for (const { policy } of charges) if (policy.lease !== undefined) return true
  return false
}

function unitsOf({ policy, units }: Charge): number {
  return units ?? reservedUnits(policy)
}

/**
 * The next lease of a client; undefined where none is worth it now.
 *
 * @param units of a request, which the next ones are taken to need too
 */
function wantedUnits(
  { held, charge, heardAtMs }: LeasedClient,
  units: number,
  nowMs: number,
): WantedUnits | undefined {
  const { lease } = charge.policy
  const used = held.use.read(nowMs)
  const min = MIN_REQUESTS * units
  if (used < min) return undefined
  const wanted =
    typeof lease === 'number'
      ? { units: lease, share: 1, min: lease }
      : { units: used, share: AUTO_SHARE, min }
  if (held.unusedAt(nowMs) > Math.min(used, wanted.units) / 2) return undefined
  // Only the shared counters know whether it has another plan now.
  if (hasStoredPlans(charge.policy) && nowMs - heardAtMs > PLAN_KNOWN_MS) return undefined
  return wanted
}

function hasStoredPlans({ plans }: Policy): boolean {
  return plans !== undefined && plans.claim === undefined
}
