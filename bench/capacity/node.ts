import { wakeUpUs, type Costs } from './costs.ts'
import type { Gateway } from './gateway.ts'
import { gatewayRules, type SetUp, type Tenants } from './set-up.ts'

/** A request that is subject to a limit. */
export type Request = {
  readonly arrivedUs: number
  /** The tenant's number, or -1 for a client within its quota. */
  readonly tenant: number
  readonly node: number
  /** Units that the gateway requests ahead, as a lease. */
  readonly wanted: number
}

export type Answer =
  | { readonly isAdmitted: true; readonly leased: number; readonly window: number }
  | { readonly isAdmitted: false; readonly window: number; readonly untilUs: number }

/** A gateway's command. `returned` has the leased and unused units by tenant. */
export type Command = {
  readonly gateway: Gateway
  readonly node: number
  readonly requests: readonly Request[]
  readonly returned: ReadonlyMap<number, { readonly units: number; readonly window: number }>
  /** When the first of its requests arrived. */
  readonly sinceUs: number
  answers: readonly Answer[]
  /** Whether the reply was received, or the gateway no longer waits for it. */
  isOver: boolean
}

const admitted: Answer = { isAdmitted: true, leased: 0, window: 0 }

type Count = { window: number; units: number }

/** A Redis master: one thread that reads all commands that have arrived, and then writes all replies. */
export class RedisNode {
  readonly #setUp: SetUp
  readonly #costs: Costs['redis']
  isAlive = true
  isBusy = false
  busyUs = 0
  commands = 0
  inbox: Command[] = []
  #idleSinceUs = 0
  #counts = new Map<number, Count>()
  /** Recently counted units, which the node's replica may lack. */
  readonly #recent: {
    readonly atUs: number
    readonly tenant: number
    readonly window: number
    readonly units: number
  }[] = []

  constructor(setUp: SetUp, costs: Costs['redis']) {
    this.#setUp = setUp
    this.#costs = costs
  }

  /** Handles all commands that have arrived. Returns them, and the time at which their replies are written. */
  run(nowUs: number): { readonly answered: readonly Command[]; readonly endUs: number } {
    const answered = this.inbox
    this.inbox = []
    let costUs = this.isBusy ? 0 : wakeUpUs(this.#costs.wakeUs, nowUs - this.#idleSinceUs)
    const { algorithm } = this.#setUp
    const [commandUs, chargeUs] = [this.#costs.commandUs[algorithm], this.#costs.chargeUs[algorithm]]
    for (const command of answered) {
      const charges = command.requests.length * this.#setUp.rules + command.returned.size
      costUs += commandUs + charges * chargeUs
      for (const [tenant, { units, window }] of command.returned) this.count(tenant, window, -units, nowUs)
      command.answers = command.requests.map((request) => this.#decide(request, nowUs))
    }
    this.isBusy = true
    this.busyUs += costUs
    this.commands += answered.length
    return { answered, endUs: nowUs + costUs }
  }

  becomeIdle(nowUs: number): void {
    this.isBusy = false
    this.#idleSinceUs = nowUs
  }

  /** Fails the node's host: unanswered commands are lost. */
  fail(): void {
    this.isAlive = false
    this.inbox = []
  }

  /** Promotes a replica, which continues with the counts that it has. */
  promote(lostSinceUs: number, nowUs: number): void {
    for (const { atUs, tenant, window, units } of this.#recent)
      if (atUs >= lostSinceUs) this.count(tenant, window, -units, nowUs)
    this.#recent.length = 0
    this.isAlive = true
    this.becomeIdle(nowUs)
  }

  /** Adds or returns units if their window is still current. */
  count(tenant: number, window: number, units: number, nowUs: number): void {
    const count = this.#countOf(tenant, windowAt(this.#setUp.tenants, nowUs))
    if (count.window === window) count.units += units
  }

  #decide({ tenant, wanted }: Request, nowUs: number): Answer {
    const { tenants } = this.#setUp
    if (tenant < 0 || !tenants) return admitted
    const window = windowAt(tenants, nowUs)
    const count = this.#countOf(tenant, window)
    const left = tenants.quota - count.units
    if (left <= 0) return { isAdmitted: false, window, untilUs: untilWhen(tenants, window, nowUs) }
    const leased = Math.max(0, Math.min(wanted, Math.floor(left * gatewayRules.leaseShareOfRemaining)))
    count.units += 1 + leased
    if (this.#setUp.failure) this.#remember(nowUs, tenant, window, 1 + leased)
    return { isAdmitted: true, leased, window }
  }

  #remember(atUs: number, tenant: number, window: number, units: number): void {
    this.#recent.push({ atUs, tenant, window, units })
    if (this.#recent.length > 100_000) this.#recent.splice(0, 50_000)
  }

  #countOf(tenant: number, window: number): Count {
    const known = this.#counts.get(tenant)
    if (known && known.window >= window) return known
    const fresh = { window, units: 0 }
    this.#counts.set(tenant, fresh)
    return fresh
  }
}

/** The number of the current window. All windows begin together, as windows of the calendar do. */
export function windowAt(tenants: Tenants | undefined, nowUs: number): number {
  return tenants ? Math.floor(nowUs / (tenants.windowMs * 1000)) : 0
}

/** The time until which a gateway remembers a refusal. */
function untilWhen({ isLeased, windowMs }: Tenants, window: number, nowUs: number): number {
  const endUs = (window + 1) * windowMs * 1000
  return isLeased ? Math.min(endUs, nowUs + gatewayRules.refusedUnderLeaseForUs) : endUs
}
