import type { Charge } from '../../../limiter.ts'
import type { Lease, LeaseStore, WantedUnits } from '../../leases/lease-store.ts'
import { keyOf, leasedKeyOf, type RedisPolicy } from '../keys.ts'
import { inOneWrite, runScript, type RedisClient, type RedisScript } from '../run-script.ts'
import { giveBackLeasesScript, takeLeasesScript } from '../scripts/lease.ts'
import { PolicyArguments } from '../scripts/policy-arguments.ts'

/** The maximum number of leases in a command. Redis takes or gives back this many in about two milliseconds. */
const LEASES_IN_COMMAND = 128

/** Values for each lease in the reply of `takeLeasesScript`. */
const REPLIED = 5

/**
 * Takes units ahead from the counters in Redis, and gives them back. All leases of a turn of the event loop share a command. In a cluster,
 * each lease is a command of its own, because a command reaches only one node.
 */
export class RedisLeaseStore implements LeaseStore {
  readonly isAnswering: LeaseStore['isAnswering']
  readonly #redis: RedisClient
  readonly #describe: (charge: Charge) => RedisPolicy
  /** The leases wanted in this turn. */
  #wanted: Wanted[] = []
  #unused: Unused[] = []

  constructor(options: {
    readonly redis: RedisClient
    readonly describe: (charge: Charge) => RedisPolicy
    readonly isAnswering: LeaseStore['isAnswering']
  }) {
    this.#redis = options.redis
    this.#describe = options.describe
    this.isAnswering = options.isAnswering
  }

  take(charge: Charge, units: () => WantedUnits): Promise<Lease> {
    return new Promise((taken, failed) => {
      this.#wanted.push({ charge, wanted: units, taken, failed })
      this.#sendLater()
    })
  }

  giveBack(charge: Charge, lease: Lease, units: number): void {
    this.#unused.push({ charge, lease, units })
    this.#sendLater()
  }

  flush(): void {
    const [wanted, unused] = [this.#wanted, this.#unused]
    this.#wanted = []
    this.#unused = []
    // Units that are given back first can be taken again.
    if (this.#redis.status === 'ready') this.#inParts(unused, (part) => this.#sendUnused(part))
    this.#inParts(wanted, (part) => void this.#ask(part))
  }

  #sendLater(): void {
    if (this.#wanted.length + this.#unused.length === 1) setImmediate(() => this.flush())
  }

  /** Calls `send` with parts that each fit into one command. */
  #inParts<Item>(items: readonly Item[], send: (part: readonly Item[]) => void): void {
    const size = this.#redis.isCluster ? 1 : LEASES_IN_COMMAND
    inOneWrite(this.#redis, () => {
      for (let at = 0; at < items.length; at += size) send(items.slice(at, at + size))
    })
  }

  async #ask(part: readonly Wanted[]): Promise<void> {
    try {
      if (!part.every(({ charge }) => this.isAnswering(charge))) throw new Error('not connected')
      const reply = await this.#run(takeLeasesScript, part, (policy, { charge, wanted }) => {
        const { units, share, min } = wanted()
        return {
          keys: [keyOf(policy, charge.partitionKey), leasedKeyOf(policy, charge.partitionKey)],
          values: [String(units), String(share), String(min)],
        }
      })
      if (!Array.isArray(reply)) throw new TypeError('unexpected reply from Redis: not an array')
      for (const [index, { taken, failed }] of part.entries()) {
        const values = reply.slice(REPLIED * index, REPLIED * (index + 1)) as readonly unknown[]
        if (typeof values[0] === 'number') taken(readLease(values))
        else failed(new Error(String(values[0])))
      }
    } catch (error) {
      for (const { failed } of part) failed(error)
    }
  }

  #sendUnused(part: readonly Unused[]): void {
    // After an error it is unknown whether the command was executed, so it is not sent again.
    this.#run(giveBackLeasesScript, part, (policy, { charge, lease, units }) => ({
      keys: [keyOf(policy, charge.partitionKey)],
      values: [lease.ticket, lease.takenAtUs, String(units)],
    })).catch(() => undefined)
  }

  #run<Item extends { readonly charge: Charge }>(
    script: RedisScript,
    part: readonly Item[],
    argumentsOf: (policy: RedisPolicy, item: Item) => Arguments,
  ): Promise<unknown> {
    const policies = new PolicyArguments()
    const keys: string[] = []
    const values: string[] = []
    for (const item of part) {
      const policy = this.#describe(item.charge)
      const made = argumentsOf(policy, item)
      keys.push(...made.keys)
      values.push(policies.numberOf(policy), ...made.values)
    }
    return runScript(this.#redis, script, keys.length, [...keys, ...policies.toArguments(), ...values])
  }
}

type Wanted = {
  readonly charge: Charge
  readonly wanted: () => WantedUnits
  readonly taken: (lease: Lease) => void
  readonly failed: (error: unknown) => void
}

type Unused = { readonly charge: Charge; readonly lease: Lease; readonly units: number }

type Arguments = { readonly keys: readonly string[]; readonly values: readonly string[] }

function readLease([units, remaining, resetUs, ticket, takenAtUs]: readonly unknown[]): Lease {
  return {
    units: Number(units),
    remaining: Number(remaining),
    leftMs: Number(resetUs) / 1000,
    ticket: String(ticket),
    takenAtUs: String(takenAtUs),
  }
}
