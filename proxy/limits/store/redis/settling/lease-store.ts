import type { Charge } from '../../../limiter.ts'
import type { Lease, LeaseStore, WantedUnits } from '../../leases/lease-store.ts'
import { keyOf, leasedKeyOf, type RedisPolicy } from '../keys.ts'
import { inOneWrite, runScript, type RedisClient, type RedisScript } from '../run-script.ts'
import { giveBackLeasesScript, takeLeasesScript } from '../scripts/lease.ts'
import { PolicyArguments } from '../scripts/policy-arguments.ts'

/** Redis takes or gives back this many in some two milliseconds. */
const LEASES_IN_COMMAND = 128

/** Values for each lease in the reply of `takeLeasesScript`. */
const REPLIED = 5

/**
 * Takes units ahead from the counters in Redis, and gives them back: those of a turn of the event loop in one command. In a cluster each
 * is a command of its own, as a command reaches one node only.
 */
export function createRedisLeaseStore(options: {
  readonly redis: RedisClient
  readonly describe: (charge: Charge) => RedisPolicy
  readonly isAnswering: LeaseStore['isAnswering']
}): LeaseStore {
  const { redis, describe, isAnswering } = options
  let wanted: Wanted[] = []
  let unused: Unused[] = []

  /** Sends the parts that fit into a command each. */
  function send<Item>(items: readonly Item[], sendPart: (part: readonly Item[]) => void): void {
    const size = redis.isCluster ? 1 : LEASES_IN_COMMAND
    inOneWrite(redis, () => {
      for (let at = 0; at < items.length; at += size) sendPart(items.slice(at, at + size))
    })
  }

  async function ask(part: readonly Wanted[]): Promise<void> {
    try {
      if (!part.every(({ charge }) => isAnswering(charge))) throw new Error('not connected')
      const reply = await run(takeLeasesScript, part, (policy, { charge, wanted }) => {
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

  function tell(part: readonly Unused[]): void {
    // After an error it is unknown whether the command was executed, so it is not sent again.
    run(giveBackLeasesScript, part, (policy, { charge, lease, units }) => ({
      keys: [keyOf(policy, charge.partitionKey)],
      values: [lease.ticket, lease.takenAtUs, String(units)],
    })).catch(() => undefined)
  }

  function run<Item extends { readonly charge: Charge }>(
    script: RedisScript,
    part: readonly Item[],
    argumentsOf: (policy: RedisPolicy, item: Item) => Arguments,
  ): Promise<unknown> {
    const policies = new PolicyArguments()
    const keys: string[] = []
    const values: string[] = []
    for (const item of part) {
      const policy = describe(item.charge)
      const made = argumentsOf(policy, item)
      keys.push(...made.keys)
      values.push(policies.numberOf(policy), ...made.values)
    }
    return runScript(redis, script, keys.length, [...keys, ...policies.toArguments(), ...values])
  }

  function sendAll(): void {
    const [asked, told] = [wanted, unused]
    wanted = []
    unused = []
    // Units that are given back first can be taken again.
    if (redis.status === 'ready') send(told, tell)
    send(asked, (part) => void ask(part))
  }

  function sendLater(): void {
    if (wanted.length + unused.length === 1) setImmediate(sendAll)
  }

  return {
    isAnswering,
    take: (charge, units) =>
      new Promise((taken, failed) => {
        wanted.push({ charge, wanted: units, taken, failed })
        sendLater()
      }),
    giveBack(charge, lease, units) {
      unused.push({ charge, lease, units })
      sendLater()
    },
    flush: sendAll,
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
