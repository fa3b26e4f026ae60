import type { Policy } from '../../../../policy.ts'
import type { Algorithm } from '../../../algorithms/algorithm.ts'
import { isReserved, usualAlgorithm } from '../../../algorithms/registry.ts'
import type { AlgorithmUse } from '../checks/rights.ts'
import { createDescriber, type RedisPolicy } from '../keys.ts'
import { loadWhenConnected, withUndeclaredKeys, type RedisClient, type RedisScript } from '../run-script.ts'
import { decideScript } from './decide.ts'
import { decidePlainScript, decideSingleScript } from './decide-plain.ts'
import { giveBackLeasesScript, takeLeasesScript } from './lease.ts'
import { renewScript, settleScript } from './settle.ts'

/**
 * The policies that have been counted so far, and the scripts that Redis needs for them. A script is loaded ahead of the first command
 * that runs it, and from then on at each new connection.
 */
export class CountedPolicies {
  /** Returns a policy in the form that the scripts take, made once. */
  readonly describe: (policy: Policy) => RedisPolicy
  readonly #isCluster: boolean
  readonly #load: (script: RedisScript) => void
  readonly #needsMore: () => void
  /** Whether anything is reserved under policies of the algorithm. */
  readonly #reserves = new Map<Algorithm, boolean>([[usualAlgorithm, false]])
  /** The algorithms of policies that read the plans of clients. */
  readonly #planned = new Set<Algorithm>()
  /** Scripts that have decided requests. Some have the numbers of policies written in them. */
  readonly #used = new Set([decideScript(new Set([usualAlgorithm])), decideSingleScript, decidePlainScript])
  /** Whether some policy has `lease`. */
  #isLeasing = false
  /** Whether requests count while they are in flight under some policy. */
  #isRenewing = false

  /**
   * @param options.keyPrefix from `keyPrefixOf`
   * @param options.wallNow the time of day, in milliseconds since 1970
   * @param options.needsMore called when `readUse` returns more than before: Redis then needs further commands
   */
  constructor(options: {
    readonly redis: RedisClient
    readonly keyPrefix: string
    readonly wallNow?: (() => number) | undefined
    readonly needsMore?: (() => void) | undefined
  }) {
    const { redis, keyPrefix, wallNow, needsMore = () => undefined } = options
    this.#isCluster = redis.isCluster
    this.#needsMore = needsMore
    this.#load = loadWhenConnected(redis, () => this.#scripts())
    this.describe = createDescriber(keyPrefix, wallNow, (policy, description) =>
      this.#add(policy, description),
    )
  }

  readUse(): AlgorithmUse[] {
    return Array.from(this.#reserves, ([algorithm, isReserved]) => ({
      algorithm,
      isReserved,
      readsPlans: this.#planned.has(algorithm),
    }))
  }

  /** Call this before each command that decides requests, so that Redis gets a new script ahead of the command. */
  use(script: RedisScript): void {
    if (this.#used.has(script)) return
    this.#used.add(script)
    this.#load(script)
    if (this.#isCluster) this.#load(withUndeclaredKeys(script))
  }

  #add(policy: Policy, { algorithm, plans }: RedisPolicy): void {
    const readsMore = plans !== undefined && !this.#planned.has(algorithm)
    if (readsMore) this.#planned.add(algorithm)
    if (policy.lease !== undefined && !this.#isLeasing) {
      this.#isLeasing = true
      leaseScripts.forEach(this.#load)
    }
    if (algorithm.countsInFlight && !this.#isRenewing) {
      this.#isRenewing = true
      this.#load(renewScript)
    }
    const takesMore = isReserved(policy) || policy.cost !== undefined || policy.lease !== undefined
    const known = this.#reserves.get(algorithm)
    this.#reserves.set(algorithm, known || takesMore)
    if (readsMore || known === undefined || (takesMore && !known)) this.#needsMore()
  }

  /** The scripts that are needed, in a cluster including those that decide with undeclared keys. */
  #scripts(): RedisScript[] {
    return [
      ...this.#used,
      ...(this.#isCluster ? Array.from(this.#used, withUndeclaredKeys) : []),
      settleScript,
      ...(this.#isRenewing ? [renewScript] : []),
      ...(this.#isLeasing ? leaseScripts : []),
    ]
  }
}

const leaseScripts = [takeLeasesScript, giveBackLeasesScript]
