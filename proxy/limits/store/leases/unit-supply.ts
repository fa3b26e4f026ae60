import type { Policy } from '../../../policy.ts'
import type { TableUse, Telemetry } from '../../../telemetry/telemetry.ts'
import { chargesOfStates, unitsOf, type Charge, type PolicyState } from '../../limiter.ts'
import type { HeldLease, TakenUnits } from './held-units.ts'
import type { Lease, LeaseStore, WantedUnits } from './lease-store.ts'
import { LeasedClients, type LeasedClient } from './leased-clients.ts'

/** A lease has to be enough for this many requests, and this many have to come in 100 ms. With fewer, a lease saves nothing. */
const MIN_REQUESTS = 10
/** `auto` takes no more than this share of the remaining quota: a tenth. */
const AUTO_SHARE = 10
/** How soon a lease is requested again if too little was left, or if the store did not answer. */
const RETRY_MS = 100
const SWEEP_MS = 50
/** How long a stored plan is considered known after the store last reported it. Without a known plan, no lease is requested. */
const PLAN_KNOWN_MS = 250
const FORGET_AFTER_MS = 1000
const MAX_CLIENTS = 10_000

/** Units that were taken for a charge of this client. */
export type TakenFromClient = TakenUnits & { readonly client: LeasedClient }

export type UnitSupplyOptions = {
  readonly store: LeaseStore
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** Calls `task` after `ms` milliseconds. */
  readonly later?: (task: () => void, ms: number) => void
  readonly telemetry: Pick<Telemetry, 'leaseChanged'>
  readonly maxClients?: number
}

/**
 * The units that this process has taken ahead from the shared counters, by client. The states that the shared counters report (`observe`)
 * show which clients are worth a lease; requests take units from it (`take`), and then either `use` them or return them (`putBack`). Each
 * use may ask for the next lease. Units that are left when a lease ends are given back by a sweep.
 */
export class UnitSupply {
  readonly #store: LeaseStore
  readonly #now: () => number
  readonly #later: (task: () => void, ms: number) => void
  readonly #telemetry: UnitSupplyOptions['telemetry']
  readonly #clients: LeasedClients
  #isSweeping = false

  constructor(options: UnitSupplyOptions) {
    this.#store = options.store
    this.#now = options.now
    this.#later = options.later ?? ((task, ms) => void setTimeout(task, ms).unref())
    this.#telemetry = options.telemetry
    this.#clients = new LeasedClients(options.maxClients ?? MAX_CLIENTS)
  }

  /** Takes the units of a charge; undefined if too few are held for its client. */
  take(charge: Charge, nowMs: number): TakenFromClient | undefined {
    const client = this.#clients.find(charge)
    if (!client) return undefined
    const { policy } = client.charge
    const taken = client.held.take(unitsOf({ ...charge, policy }), nowMs)
    return taken && { client, ...taken }
  }

  /** The units that are held for the client of a charge. */
  heldFor(charge: Charge, nowMs: number): number {
    return this.#clients.find(charge)?.held.unusedAt(nowMs) ?? 0
  }

  /** Records that the request for which the units were taken passes. */
  use({ client, units }: TakenFromClient): void {
    this.#telemetry.leaseChanged(client.charge.policy, 'used', units)
    this.#recordUse(client, units, this.#now())
  }

  /** Puts back the units of a request that does not pass. */
  putBack({ client, held, units }: TakenFromClient): void {
    held.unused += units
    if (held.isOver) this.#giveBack(client, [held])
  }

  /** Records the states of clients whose charges the shared counters have allowed. */
  observe(charges: readonly Charge[], states: readonly PolicyState[]): void {
    const nowMs = this.#now()
    const counted = chargesOfStates(charges, states)
    for (const [index, state] of states.entries()) {
      const charge = counted[index]
      if (charge?.policy.lease === undefined || state.exceeded) continue
      const client = this.#clients.find(charge) ?? this.#clients.add(charge, nowMs)
      if (!client) continue
      this.#updateClient(client, state, nowMs)
      this.#recordUse(client, unitsOf({ ...charge, policy: state.policy }), nowMs)
      if (!this.#isSweeping) this.#sweepLater()
    }
  }

  giveBackAll(): void {
    this.#clients.removeIf((client) => {
      this.#giveBack(client, client.held.removeAll())
      return true
    })
    this.#store.flush()
  }

  readUse(): TableUse {
    return this.#clients.readUse()
  }

  #updateClient(client: LeasedClient, { policy, isPlanUnknown }: PolicyState, nowMs: number): void {
    if (client.charge.policy !== policy) {
      // The plan has changed: the units were counted with the quota of the previous plan.
      this.#giveBack(client, client.held.removeAll())
      client.charge = { ...client.charge, policy }
    }
    client.isPlanUnknown = isPlanUnknown === true
    client.observedAtMs = nowMs
  }

  /** @param units the units of a request that this process or the shared counters have allowed */
  #recordUse(client: LeasedClient, units: number, nowMs: number): void {
    client.held.use.add(units, nowMs)
    if (client.isTaking || nowMs < client.notBeforeMs || !this.#store.isAnswering(client.charge)) return
    const wanted = wantedUnits(client, units, nowMs)
    if (!wanted) return
    client.isTaking = true
    this.#store
      .take(client.charge, () => wantedUnits(client, units, this.#now()) ?? wanted)
      .then(
        (lease) => this.#addLease(client, lease, nowMs),
        () => {
          client.isTaking = false
          client.notBeforeMs = this.#now() + RETRY_MS
        },
      )
  }

  #addLease(client: LeasedClient, lease: Lease, askedAtMs: number): void {
    client.isTaking = false
    if (lease.units === 0) {
      client.notBeforeMs = askedAtMs + Math.min(RETRY_MS, lease.leftMs)
      return
    }
    this.#telemetry.leaseChanged(client.charge.policy, 'taken', lease.units)
    const held = client.held.add(lease, askedAtMs)
    if (client.isGone) this.#giveBack(client, client.held.removeAll())
    else if (held.endsAtMs <= this.#now()) this.#giveBackEnded(client)
  }

  #giveBack({ charge }: LeasedClient, leases: readonly HeldLease[]): void {
    for (const held of leases) {
      const units = held.unused
      held.unused = 0
      if (units === 0 || held.windowEndsAtMs <= this.#now()) continue
      this.#telemetry.leaseChanged(charge.policy, 'returned', units)
      this.#store.giveBack(charge, held.lease, units)
    }
  }

  #giveBackEnded(client: LeasedClient): void {
    this.#giveBack(client, client.held.removeEnded(this.#now()))
  }

  /** Schedules sweeps for as long as there are clients. A sweep gives back the units of ended leases, and forgets idle clients. */
  #sweepLater(): void {
    this.#isSweeping = true
    this.#later(() => {
      const nowMs = this.#now()
      this.#clients.removeIf((client) => {
        this.#giveBackEnded(client)
        return client.held.isEmpty && !client.isTaking && nowMs - client.observedAtMs > FORGET_AFTER_MS
      })
      if (this.#clients.size > 0) this.#sweepLater()
      else this.#isSweeping = false
    }, SWEEP_MS)
  }
}

/**
 * Returns the next lease to request for a client; undefined if a lease is not worth it now.
 *
 * @param units the units of a request; later requests are assumed to need as many
 */
function wantedUnits(
  { held, charge, observedAtMs }: LeasedClient,
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
  // Only the shared counters know whether the client has another plan now.
  if (hasStoredPlans(charge.policy) && nowMs - observedAtMs > PLAN_KNOWN_MS) return undefined
  return wanted
}

function hasStoredPlans({ plans }: Policy): boolean {
  return plans !== undefined && plans.claim === undefined
}
