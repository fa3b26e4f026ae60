import { randomBytes } from 'node:crypto'
import type { Charge } from '../../../limiter.ts'
import { runScript, type RedisClient } from '../run-script.ts'
import { PolicyArguments } from '../scripts/policy-arguments.ts'
import { renewScript } from '../scripts/settle.ts'
import { keyOf, type RedisPolicy } from '../keys.ts'

export type Leases = {
  /** A name for a request in flight that no other process has given. */
  nextName(): string
  /** From now on the request is in flight. */
  add(name: string, charge: Charge): void
  /** The request is over. Returns its charge, once. */
  remove(name: string): Charge | undefined
  /** Renews those of these charges now. Resolves also where that fails. */
  renew(isAsked: (charge: Charge) => boolean): Promise<void>
  close(): void
}

/** Three renewals can fail before Redis takes a request that is still in flight to be over. */
const RENEW_EVERY_MS = 4_000
const RENEWED_AT_ONCE = 256

/**
 * The requests of this process that are in flight under a limit of concurrency. Redis counts each for 15 seconds, so that
 * those of a process that has died do not count for longer. A living process renews its own in time, and adds again those
 * that Redis has lost.
 *
 * @param options.isAnswering whether there is any use in asking
 */
export function createLeases(options: {
  readonly redis: RedisClient
  readonly describe: (charge: Charge) => RedisPolicy
  readonly isAnswering: (charge: Charge) => boolean
}): Leases {
  const { redis, describe, isAnswering } = options
  const prefix = randomBytes(6).toString('base64url')
  const inFlight = new Map<string, Charge>()
  let last = 0
  let timer: NodeJS.Timeout | undefined

  async function renewAll(isAsked: (charge: Charge) => boolean): Promise<void> {
    const names = [...inFlight.keys()]
    for (let at = 0; at < names.length; at += RENEWED_AT_ONCE) {
      // Requests that have ended meanwhile must not be added again.
      const part = names.slice(at, at + RENEWED_AT_ONCE).filter((name) => {
        const charge = inFlight.get(name)
        return charge && isAsked(charge)
      })
      await (redis.isCluster ? Promise.allSettled(part.map((name) => renewPart([name]))) : renewPart(part))
    }
  }

  async function renewPart(names: readonly string[]): Promise<void> {
    const policies = new PolicyArguments()
    const keys: string[] = []
    const renewed: string[] = []
    for (const name of names) {
      const charge = inFlight.get(name)
      if (!charge) continue
      keys.push(keyOf(describe(charge), charge.partitionKey))
      renewed.push(policies.numberOf(describe(charge)), name)
    }
    if (keys.length === 0) return
    await runScript(redis, renewScript, keys.length, [...keys, ...policies.toArguments(), ...renewed])
  }

  /** A failed renewal is retried before the requests count as over. */
  const renew: Leases['renew'] = (isAsked) => renewAll(isAsked).catch(() => undefined)

  function renewLater(): void {
    timer ??= setTimeout(() => {
      void renew(isAnswering).then(() => {
        timer = undefined
        if (inFlight.size > 0) renewLater()
      })
    }, RENEW_EVERY_MS).unref()
  }

  return {
    nextName: () => `${prefix}${(++last).toString(36)}`,
    add(name, charge) {
      inFlight.set(name, charge)
      renewLater()
    },
    remove(name) {
      const charge = inFlight.get(name)
      inFlight.delete(name)
      return charge
    },
    renew,
    close() {
      clearTimeout(timer)
      inFlight.clear()
    },
  }
}
