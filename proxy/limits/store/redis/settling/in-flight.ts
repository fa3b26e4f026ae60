import { randomBytes } from 'node:crypto'
import type { Charge } from '../../../limiter.ts'
import { errorCodeOf } from '../errors.ts'
import { inOneWrite, type RedisClient } from '../run-script.ts'
import { PolicyArguments } from '../scripts/policy-arguments.ts'
import { renewScript } from '../scripts/settle.ts'
import { keyOf, type RedisPolicy } from '../keys.ts'

/** Three renewals in a row can fail before Redis stops counting a request that is still in flight. */
const RENEW_EVERY_MS = 4_000
const RENEWED_AT_ONCE = 256

/**
 * The requests of this process that are in flight under a concurrency limit. Redis counts each for 15 seconds, so that the
 * requests of a process that has died do not count for longer. A running process renews its requests in time, and adds
 * requests again that Redis has lost.
 */
export class InFlightRequests {
  readonly #redis: RedisClient
  readonly #describe: (charge: Charge) => RedisPolicy
  readonly #isAnswering: (charge: Charge) => boolean
  readonly #serverOf: (charge: Charge) => string
  readonly #namePrefix = randomBytes(6).toString('base64url')
  #lastName = 0
  /** By request name. */
  readonly #charges = new Map<string, Charge>()
  /** By request name, the server that was last told of the request. */
  readonly #servers = new Map<string, string>()
  /** The names of requests that the server of their counter may not know. */
  readonly #unsent = new Set<string>()
  #timer: NodeJS.Timeout | undefined

  /**
   * @param options.isAnswering whether the server of a charge's counter is expected to answer
   * @param options.serverOf as in `createSettling`
   */
  constructor(options: {
    readonly redis: RedisClient
    readonly describe: (charge: Charge) => RedisPolicy
    readonly isAnswering: (charge: Charge) => boolean
    readonly serverOf: (charge: Charge) => string
  }) {
    this.#redis = options.redis
    this.#describe = options.describe
    this.#isAnswering = options.isAnswering
    this.#serverOf = options.serverOf
  }

  /** Returns a name for a request in flight that no other process uses. */
  nextName(): string {
    return `${this.#namePrefix}${(++this.#lastName).toString(36)}`
  }

  /** Adds a request that is in flight from now on, and that Redis has counted. */
  add(name: string, charge: Charge): void {
    this.#servers.set(name, this.#serverOf(charge))
    this.#addCharge(name, charge)
  }

  /** Adds a request that is in flight from now on, and that was admitted without Redis. */
  addUnsent(name: string, charge: Charge): void {
    this.#unsent.add(name)
    this.#addCharge(name, charge)
  }

  /**
   * Returns the charges whose requests the server of their counter may not know: those admitted without Redis, and those whose counter may
   * be on another server by now.
   */
  findUnsent(): readonly Charge[] {
    for (const [name, server] of this.#servers) {
      const charge = this.#charges.get(name)
      if (charge && this.#serverOf(charge) !== server) this.#unsent.add(name)
    }
    return [...this.#unsent].flatMap((name) => this.#charges.get(name) ?? [])
  }

  /** Removes a request that has ended. Returns whether it was in flight. */
  remove(name: string): boolean {
    this.#unsent.delete(name)
    this.#servers.delete(name)
    return this.#charges.delete(name)
  }

  /**
   * Sends the requests of these charges that their server may not know, ahead of all later commands. Rejects if any of them has to be sent
   * again.
   */
  async sendUnsent(isAsked: (charge: Charge) => boolean): Promise<void> {
    const names = this.#namesOf([...this.#unsent], isAsked)
    const size = this.#redis.isCluster ? 1 : RENEWED_AT_ONCE
    const sent = inOneWrite(this.#redis, () => {
      const parts: Promise<void>[] = []
      for (let at = 0; at < names.length; at += size) parts.push(this.#send(names.slice(at, at + size)))
      return parts
    })
    await Promise.all(sent)
  }

  /** Renews the requests of these charges now. Never rejects: a renewal that fails is retried before the requests count as over. */
  async renew(isAsked: (charge: Charge) => boolean): Promise<void> {
    const names = [...this.#charges.keys()]
    try {
      for (let at = 0; at < names.length; at += RENEWED_AT_ONCE)
        await this.#renewPart(names.slice(at, at + RENEWED_AT_ONCE), isAsked)
    } catch {
      // The next renewal is soon enough.
    }
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#charges.clear()
    this.#servers.clear()
    this.#unsent.clear()
  }

  #addCharge(name: string, charge: Charge): void {
    this.#charges.set(name, charge)
    this.#renewLater()
  }

  #renewLater(): void {
    this.#timer ??= setTimeout(() => {
      void this.renew(this.#isAnswering).then(() => {
        this.#timer = undefined
        if (this.#charges.size > 0) this.#renewLater()
      })
    }, RENEW_EVERY_MS).unref()
  }

  async #renewPart(names: readonly string[], isAsked: (charge: Charge) => boolean): Promise<void> {
    const part = this.#namesOf(names, isAsked)
    // In a cluster a command reaches the counters of one client.
    if (this.#redis.isCluster) await Promise.allSettled(part.map((name) => this.#send([name])))
    else await this.#send(part)
  }

  /** Leaves out requests that have ended meanwhile, which must not be added again. */
  #namesOf(names: readonly string[], isAsked: (charge: Charge) => boolean): readonly string[] {
    return names.filter((name) => {
      const charge = this.#charges.get(name)
      return charge && isAsked(charge)
    })
  }

  /**
   * Sends these requests, except those that have ended.
   *
   * @param isKnown whether Redis is expected to know the script
   */
  async #send(names: readonly string[], isKnown = true): Promise<void> {
    const policies = new PolicyArguments()
    const keys: string[] = []
    const renewed: string[] = []
    const servers = new Map<string, string>()
    for (const name of names) {
      const charge = this.#charges.get(name)
      if (!charge) continue
      servers.set(name, this.#serverOf(charge))
      const policy = this.#describe(charge)
      keys.push(keyOf(policy, charge.partitionKey))
      renewed.push(policies.numberOf(policy), name)
    }
    if (keys.length === 0) return
    const sent = names.filter((name) => this.#unsent.delete(name))
    const keysAndArguments = [...keys, ...policies.toArguments(), ...renewed]
    const { source, sha1 } = renewScript
    try {
      if (isKnown) await this.#redis.evalsha(sha1, keys.length, keysAndArguments)
      else await this.#redis.eval(source, keys.length, keysAndArguments)
      for (const [name, server] of servers) if (this.#charges.has(name)) this.#servers.set(name, server)
    } catch (error) {
      for (const name of sent) if (this.#charges.has(name)) this.#unsent.add(name)
      if (errorCodeOf(error) !== 'NOSCRIPT') throw error
      // Not by `runScript`, which would add the requests again whose end was sent meanwhile.
      await this.#send(names, false)
    }
  }
}
