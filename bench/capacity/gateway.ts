import type { Costs } from './costs.ts'
import { windowAt, type Command, type Request } from './node.ts'
import { gatewayRules, type SetUp } from './set-up.ts'

/** What becomes of a request, once the turn has ended in which that was known. */
export type Outcome = {
  readonly request: Request
  readonly isAdmitted: boolean
  /** The window in which it was counted. */
  readonly window: number
  /** Whether the gateway decided without Redis, since that did not answer. */
  readonly isLocal: boolean
}

/** The end of a turn of the event loop: its decisions, and the commands that are sent. */
export type Turn = {
  readonly endUs: number
  readonly outcomes: readonly Outcome[]
  readonly sent: readonly Command[]
}

type Lane = {
  pending: Request[]
  returned: Map<number, { units: number; window: number }>
  unanswered: number
}
type LocalCount = { readonly window: number; units: number }
type Lease = { units: number; readonly window: number; readonly endUs: number }
type Usage = { sinceUs: number; used: number; before: number }

/** A gateway's process: in each turn it handles all that has arrived, and then sends what it may. */
export class Gateway {
  readonly #setUp: SetUp
  readonly #costs: Costs['gateway']
  isServing = true
  isRunning = false
  busyUs = 0
  readonly inbox: (Request | Command)[] = []
  /** Nodes whose circuit breaker is open. */
  readonly openNodes = new Set<number>()
  /** Nodes to which it is adding what it admitted without them. */
  readonly repaying = new Set<number>()
  readonly #failuresInARow = new Map<number, number>()
  readonly #lanes = new Map<number, Lane>()
  /** Nodes for which something is pending. */
  readonly #unsent = new Set<number>()
  readonly #overLimitUntilUs = new Map<number, number>()
  readonly #leases = new Map<number, Lease>()
  readonly #usages = new Map<number, Usage>()
  /** What it has admitted without Redis, by tenant. */
  readonly #local = new Map<number, LocalCount>()

  constructor(setUp: SetUp, costs: Costs['gateway']) {
    this.#setUp = setUp
    this.#costs = costs
  }

  runTurn(nowUs: number): Turn {
    const outcomes: Outcome[] = []
    let costUs = 0
    for (const item of this.inbox.splice(0)) {
      if ('tenant' in item) {
        costUs += this.#costs.requestUs
        const outcome = this.#accept(item, nowUs)
        if (outcome) outcomes.push(outcome)
      } else if (!item.isOver) {
        costUs += item.requests.length * this.#costs.decisionUs
        this.#receive(item, nowUs, outcomes)
      }
    }
    this.#returnEndedLeases(nowUs)
    const sent: Command[] = []
    for (const node of this.#unsent) this.#send(node, sent, nowUs)
    costUs += sent.length * this.#costs.commandUs
    this.busyUs += costUs
    return { endUs: nowUs + costUs, outcomes, sent }
  }

  /** A command was not answered in time. */
  expire(command: Command, nowUs: number): Outcome[] {
    if (command.isOver) return []
    command.isOver = true
    const { node } = command
    this.#laneOf(node).unanswered -= 1
    const failures = (this.#failuresInARow.get(node) ?? 0) + 1
    this.#failuresInARow.set(node, failures)
    const decided = command.requests.map((request) => this.#decideAlone(request, nowUs))
    return failures >= gatewayRules.failuresToOpen ? [...decided, ...this.openBreaker(node, nowUs)] : decided
  }

  /** Decides the requests that have waited too long to be sent to this node. */
  expirePending(node: number, nowUs: number): Outcome[] {
    const lane = this.#laneOf(node)
    const isLate = ({ arrivedUs }: Request): boolean => nowUs - arrivedUs >= gatewayRules.storeTimeoutUs
    const late = lane.pending.filter(isLate)
    lane.pending = lane.pending.filter((request) => !isLate(request))
    return late.map((request) => this.#decideAlone(request, nowUs))
  }

  /** Decides by itself for this node until it answers again. Returns what it decides at once. */
  openBreaker(node: number, nowUs: number): Outcome[] {
    if (this.openNodes.has(node)) return []
    this.openNodes.add(node)
    const pending = this.#laneOf(node).pending.splice(0)
    return pending.map((request) => this.#decideAlone(request, nowUs))
  }

  closeBreaker(node: number): void {
    this.openNodes.delete(node)
    this.#failuresInARow.delete(node)
  }

  /** What it has admitted without this node, once. */
  takeLocal(node: number): (readonly [tenant: number, count: LocalCount])[] {
    const taken = [...this.#local].filter(([tenant]) => this.#nodeOf(tenant) === node)
    for (const [tenant] of taken) this.#local.delete(tenant)
    return taken
  }

  hasLocal(node: number): boolean {
    return this.#local.keys().some((tenant) => this.#nodeOf(tenant) === node)
  }

  /** It is replaced by one that knows nothing. What it had leased is given back. */
  restart(nowUs: number): void {
    this.#overLimitUntilUs.clear()
    this.#usages.clear()
    this.#returnEndedLeases(nowUs, true)
  }

  #accept(request: Request, nowUs: number): Outcome | undefined {
    const { tenant } = request
    if (tenant < 0 && this.openNodes.has(request.node)) return this.#decideAlone(request, nowUs)
    if (tenant >= 0) {
      const window = windowAt(this.#setUp.tenants, nowUs)
      if (nowUs < (this.#overLimitUntilUs.get(tenant) ?? 0))
        return { request, isAdmitted: false, window, isLocal: false }
      const lease = this.#leases.get(tenant)
      if (lease && lease.units > 0 && lease.window === window && nowUs < lease.endUs) {
        lease.units -= 1
        this.#noteUse(tenant, nowUs)
        return { request, isAdmitted: true, window, isLocal: false }
      }
      if (this.openNodes.has(request.node)) return this.#decideAlone(request, nowUs)
    }
    this.#laneOf(request.node).pending.push(
      this.#setUp.tenants?.isLeased ? this.#withWish(request, nowUs) : request,
    )
    this.#unsent.add(request.node)
    return undefined
  }

  #withWish(request: Request, nowUs: number): Request {
    if (request.tenant < 0) return request
    const { before, used } = this.#usageOf(request.tenant, nowUs)
    const usual = Math.max(before, used)
    if (usual < gatewayRules.leaseFromUsed) return request
    return { ...request, wanted: Math.ceil(usual * gatewayRules.leasedTimesUsed) }
  }

  #receive(command: Command, nowUs: number, outcomes: Outcome[]): void {
    command.isOver = true
    this.#laneOf(command.node).unanswered -= 1
    this.#failuresInARow.delete(command.node)
    for (const [index, request] of command.requests.entries()) {
      const answer = command.answers[index]
      if (!answer) continue
      if (answer.isAdmitted) {
        if (answer.leased > 0) this.#addLease(request, answer.leased, answer.window, nowUs)
        if (request.tenant >= 0) this.#noteUse(request.tenant, nowUs)
        outcomes.push({ request, isAdmitted: true, window: answer.window, isLocal: false })
      } else {
        this.#overLimitUntilUs.set(request.tenant, answer.untilUs)
        outcomes.push({ request, isAdmitted: false, window: answer.window, isLocal: false })
      }
    }
  }

  #addLease({ tenant }: Request, units: number, window: number, nowUs: number): void {
    const old = this.#leases.get(tenant)
    if (old?.window === window) old.units += units
    else this.#leases.set(tenant, { units, window, endUs: nowUs + gatewayRules.leaseUs })
  }

  #returnEndedLeases(nowUs: number, isEnd = false): void {
    for (const [tenant, lease] of this.#leases) {
      if (!isEnd && nowUs < lease.endUs) continue
      this.#leases.delete(tenant)
      const { units, window } = lease
      if (units === 0) continue
      const node = this.#nodeOf(tenant)
      this.#laneOf(node).returned.set(tenant, { units, window })
      this.#unsent.add(node)
    }
  }

  #noteUse(tenant: number, nowUs: number): void {
    this.#usageOf(tenant, nowUs).used += 1
  }

  /** What it has used in this tenth of a second and in the one before. */
  #usageOf(tenant: number, nowUs: number): Usage {
    const usage = this.#usages.get(tenant) ?? { sinceUs: nowUs, used: 0, before: 0 }
    this.#usages.set(tenant, usage)
    if (nowUs - usage.sinceUs >= gatewayRules.usageUs) {
      const isNext = nowUs - usage.sinceUs < 2 * gatewayRules.usageUs
      usage.before = isNext ? usage.used : 0
      usage.used = 0
      usage.sinceUs = nowUs
    }
    return usage
  }

  /** All that may be sent to this node: full commands at once, others while few are unanswered. */
  #send(node: number, sent: Command[], nowUs: number): void {
    const lane = this.#laneOf(node)
    const most = Math.max(1, Math.floor(gatewayRules.maxChargesInCommand / this.#setUp.rules))
    while (lane.pending.length > 0 || lane.returned.size > 0) {
      if (lane.pending.length < most && lane.unanswered >= gatewayRules.maxUnanswered) return
      const requests = lane.pending.splice(0, most)
      const sinceUs = requests[0]?.arrivedUs ?? nowUs
      sent.push({
        gateway: this,
        node,
        requests,
        returned: lane.returned,
        sinceUs,
        answers: [],
        isOver: false,
      })
      lane.returned = new Map()
      lane.unanswered += 1
    }
    this.#unsent.delete(node)
  }

  /** `onStoreError: local`: it counts by itself, against the whole quota. */
  #decideAlone(request: Request, nowUs: number): Outcome {
    const { tenants } = this.#setUp
    const window = windowAt(tenants, nowUs)
    const known = this.#local.get(request.tenant)
    const count = known?.window === window ? known : { window, units: 0 }
    if (request.tenant >= 0) this.#local.set(request.tenant, count)
    const isAdmitted = request.tenant < 0 || count.units < (tenants?.quota ?? Infinity)
    if (isAdmitted) count.units += 1
    return { request, isAdmitted, window, isLocal: true }
  }

  #nodeOf(tenant: number): number {
    return tenant % this.#setUp.nodes
  }

  #laneOf(node: number): Lane {
    const known = this.#lanes.get(node)
    if (known) return known
    const lane = { pending: [], returned: new Map(), unanswered: 0 }
    this.#lanes.set(node, lane)
    return lane
  }
}
