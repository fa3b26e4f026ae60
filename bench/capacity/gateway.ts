import type { Costs } from './costs.ts'
import { windowAt, type Command, type Request } from './node.ts'
import { gatewayRules, type SetUp } from './set-up.ts'

/** The result of a request, available when the turn that determined it has ended. */
export type Outcome = {
  readonly request: Request
  readonly isAdmitted: boolean
  /** The window that counted the request. */
  readonly window: number
  /** Whether the gateway decided without Redis, because Redis did not answer. */
  readonly isLocal: boolean
}

/** The end of a turn of the event loop, with its decisions and the commands to send. */
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

/** A gateway's process: in each turn it handles everything that has arrived, and then sends the commands that it may send. */
export class Gateway {
  readonly #setUp: SetUp
  readonly #costs: Costs['gateway']
  isServing = true
  isRunning = false
  busyUs = 0
  readonly inbox: (Request | Command)[] = []
  /** Nodes whose circuit breaker is open. */
  readonly openNodes = new Set<number>()
  /** Nodes to which the gateway is adding the units that it admitted without them. */
  readonly repaying = new Set<number>()
  readonly #failuresInARow = new Map<number, number>()
  readonly #lanes = new Map<number, Lane>()
  /** Nodes with pending requests or returned units. */
  readonly #unsent = new Set<number>()
  readonly #overLimitUntilUs = new Map<number, number>()
  readonly #leases = new Map<number, Lease>()
  readonly #usages = new Map<number, Usage>()
  /** Units admitted without Redis, by tenant. */
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

  /** Handles a command that was not answered in time. */
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

  /** Decides the requests for this node that have waited too long to be sent. */
  expirePending(node: number, nowUs: number): Outcome[] {
    const lane = this.#laneOf(node)
    const isLate = ({ arrivedUs }: Request): boolean => nowUs - arrivedUs >= gatewayRules.storeTimeoutUs
    const late = lane.pending.filter(isLate)
    lane.pending = lane.pending.filter((request) => !isLate(request))
    return late.map((request) => this.#decideAlone(request, nowUs))
  }

  /** Makes the gateway decide without this node until the node answers again. Returns the immediate decisions. */
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

  /** Takes the units that were admitted without this node, so that they are added only once. */
  takeLocal(node: number): (readonly [tenant: number, count: LocalCount])[] {
    const taken = [...this.#local].filter(([tenant]) => this.#nodeOf(tenant) === node)
    for (const [tenant] of taken) this.#local.delete(tenant)
    return taken
  }

  hasLocal(node: number): boolean {
    return this.#local.keys().some((tenant) => this.#nodeOf(tenant) === node)
  }

  /** Replaces the gateway with one that has no state. Its leased units are given back. */
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

  /** The units that the tenant used in this tenth of a second and in the previous one. */
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

  /** Sends everything that may be sent to this node: full commands at once, others while few are unanswered. */
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

  /** Decides as under `onStoreError: local`: counts in the gateway, against the whole quota. */
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
