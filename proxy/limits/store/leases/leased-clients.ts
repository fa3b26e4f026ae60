import type { Policy } from '../../../policy.ts'
import type { TableUse } from '../../../telemetry/telemetry.ts'
import type { Charge } from '../../limiter.ts'
import { HeldUnits } from './held-units.ts'

/** A client under a policy with `lease` whose requests are being admitted. */
export type LeasedClient = {
  readonly held: HeldUnits
  /** The charge with the policy under which the units are counted: the policy of the client's stored plan, if it has one. */
  charge: Charge
  /** The policy does not have the plan that was read for the client. */
  isPlanUnknown: boolean
  /** When the store last reported the policy that it counts under. */
  observedAtMs: number
  /** A lease was requested and has not arrived. */
  isTaking: boolean
  /** The earliest time at which a lease is requested. */
  notBeforeMs: number
  /** The client was removed, for example because the table of limits has changed. A lease that arrives later is given back. */
  isGone: boolean
}

/** The clients for which units are held or may soon be held, at most `maxClients`. Beyond that, further clients get no leases. */
export class LeasedClients {
  readonly #byPolicy = new Map<Policy, Map<string, LeasedClient>>()
  readonly #maxClients: number
  #size = 0

  constructor(maxClients: number) {
    this.#maxClients = maxClients
  }

  get size(): number {
    return this.#size
  }

  find({ policy, partitionKey }: Charge): LeasedClient | undefined {
    return this.#byPolicy.get(policy)?.get(partitionKey)
  }

  add({ policy, partitionKey }: Charge, nowMs: number): LeasedClient | undefined {
    if (this.#size >= this.#maxClients) return undefined
    let clients = this.#byPolicy.get(policy)
    if (!clients) this.#byPolicy.set(policy, (clients = new Map<string, LeasedClient>()))
    const client: LeasedClient = {
      held: new HeldUnits(),
      charge: { policy, partitionKey },
      isPlanUnknown: false,
      observedAtMs: nowMs,
      isTaking: false,
      notBeforeMs: -Infinity,
      isGone: false,
    }
    clients.set(partitionKey, client)
    this.#size += 1
    return client
  }

  /** Calls `visit` for each client, and removes the clients for which it returns true. */
  removeIf(visit: (client: LeasedClient) => boolean): void {
    for (const [policy, clients] of this.#byPolicy) {
      for (const [partitionKey, client] of clients) {
        if (!visit(client)) continue
        clients.delete(partitionKey)
        client.isGone = true
        this.#size -= 1
      }
      if (clients.size === 0) this.#byPolicy.delete(policy)
    }
  }

  readUse(): TableUse {
    return { size: this.#size, capacity: this.#maxClients, evictions: 0 }
  }
}
