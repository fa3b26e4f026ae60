import { seededRandom } from '../../test/support/random/seeded-random.ts'
import type { Costs } from './costs.ts'
import { EventQueue } from './event-queue.ts'
import { Gateway, type Outcome } from './gateway.ts'
import { RedisNode, windowAt, type Command, type Request } from './node.ts'
import { gatewayRules, type SetUp } from './set-up.ts'

export type Simulated = {
  readonly decided: number
  /** Microseconds of CPU of all Redis nodes together. */
  readonly redisUsADecision: number
  readonly decisionsACommand: number
  /** The share of a core that nodes and gateways use. */
  readonly redisBusy: { readonly mean: number; readonly max: number }
  readonly gatewayBusy: { readonly mean: number; readonly max: number }
  readonly seconds: readonly Second[]
  readonly latency: Latency
  readonly tenants: {
    readonly admitted: number
    /** Admitted beyond a quota. */
    readonly overQuota: number
    /** Refused in a window whose quota was not used up at its end. */
    readonly refusedEarly: number
    readonly refused: number
  }
}

export type Latency = { readonly p50Us: number; readonly p99Us: number; readonly maxUs: number }

/** What happened in a second of the simulated time. */
export type Second = { readonly decided: number; readonly withoutRedis: number; readonly latency: Latency }

type Event =
  | { readonly kind: 'arrival' | 'fail' | 'promote' | 'replace' }
  | { readonly kind: 'at node'; readonly node: number; readonly command: Command }
  | { readonly kind: 'node done'; readonly node: number; readonly answered: readonly Command[] }
  | { readonly kind: 'at gateway'; readonly command: Command }
  | {
      readonly kind: 'turn done'
      readonly gateway: Gateway
      readonly outcomes: readonly Outcome[]
      readonly sent: readonly Command[]
    }
  | { readonly kind: 'deadline'; readonly command: Command }
  | {
      readonly kind: 'pending deadline' | 'probe' | 'repaid'
      readonly gateway: Gateway
      readonly node: number
    }
  | { readonly kind: 'start'; readonly gateway: Gateway }

/**
 * Simulates gateways and Redis nodes event by event: requests arrive at random, a gateway handles all arrivals of a turn and asks about
 * them together, and a node answers all commands that have arrived. Equal set-ups with equal seeds give equal results.
 */
export function simulate(setUp: SetUp, costs: Costs): Simulated {
  return new Simulation(setUp, costs).run()
}

class Simulation {
  readonly #setUp: SetUp
  readonly #events = new EventQueue<Event>()
  readonly #random: () => number
  readonly #gateways: Gateway[]
  readonly #nodes: RedisNode[]
  readonly #latenciesUs: number[][]
  readonly #withoutRedis: number[] = []
  readonly #verdicts = new Map<string, { admitted: number; refused: number }>()
  readonly #endUs: number
  readonly #oneWayUs: number
  #serving: Gateway[]
  /** Gateways that have work to do when the turn of another gateway ends. */
  readonly #waiting = new Set<Gateway>()
  #replaced = 0
  #arrived = 0

  constructor(setUp: SetUp, costs: Costs) {
    this.#setUp = setUp
    this.#random = seededRandom(setUp.seed)
    this.#gateways = Array.from({ length: setUp.gateways }, () => new Gateway(setUp, costs.gateway))
    this.#nodes = Array.from({ length: setUp.nodes }, () => new RedisNode(setUp, costs.redis))
    this.#serving = [...this.#gateways]
    this.#endUs = setUp.seconds * 1e6
    this.#latenciesUs = Array.from({ length: Math.ceil(setUp.seconds) }, () => [])
    this.#oneWayUs = setUp.roundTripUs / 2
  }

  run(): Simulated {
    const { failure, upgrade } = this.#setUp
    this.#events.add(this.#nextArrivalUs(0), { kind: 'arrival' })
    if (failure) {
      this.#events.add(failure.atSeconds * 1e6, { kind: 'fail' })
      this.#events.add((failure.atSeconds + failure.promotedAfterSeconds) * 1e6, { kind: 'promote' })
    }
    if (upgrade) this.#events.add(upgrade.fromSeconds * 1e6, { kind: 'replace' })
    for (let next = this.#events.next(); next; next = this.#events.next()) this.#handle(next.event, next.atUs)
    return this.#summarize()
  }

  #handle(event: Event, nowUs: number): void {
    switch (event.kind) {
      case 'arrival':
        return this.#arrive(nowUs)
      case 'at node':
        return this.#reachNode(event.node, event.command, nowUs)
      case 'node done':
        for (const command of event.answered)
          this.#events.add(nowUs + this.#oneWayUs, { kind: 'at gateway', command })
        return this.#runNode(event.node, nowUs)
      case 'at gateway':
        event.command.gateway.inbox.push(event.command)
        return this.#runGateway(event.command.gateway, nowUs)
      case 'turn done':
        return this.#endTurn(event, nowUs)
      case 'deadline':
        return this.#expire(event.command, nowUs)
      case 'pending deadline':
        return this.#finish(event.gateway.expirePending(event.node, nowUs), nowUs)
      case 'probe':
        return this.#probe(event.gateway, event.node, nowUs)
      case 'repaid':
        return this.#endRepayment(event.gateway, event.node, nowUs)
      case 'fail':
        return this.#failNode(nowUs)
      case 'promote':
        return this.#promoteNode(nowUs)
      case 'replace':
        return this.#replaceGateways(nowUs)
      case 'start':
        event.gateway.isServing = true
        this.#serving = this.#gateways.filter(({ isServing }) => isServing)
    }
  }

  /** Random arrivals are a Poisson process, like those of many independent clients. */
  #nextArrivalUs(nowUs: number): number {
    const { arrivalsUs, decisionsPerSecond } = this.#setUp
    if (arrivalsUs) return arrivalsUs[this.#arrived++] ?? Infinity
    return nowUs + (-Math.log(1 - this.#random()) * 1e6) / decisionsPerSecond
  }

  /** Requests that arrive at the same time are handled in the same turn of their gateway. */
  #arrive(nowUs: number): void {
    const asked = new Set<Gateway>()
    let nextUs: number
    do {
      nextUs = this.#nextArrivalUs(nowUs)
      const gateway = this.#serving[Math.floor(this.#random() * this.#serving.length)]
      if (!gateway) continue
      gateway.inbox.push(this.#drawRequest(nowUs))
      asked.add(gateway)
    } while (nextUs <= nowUs)
    if (nextUs < this.#endUs) this.#events.add(nextUs, { kind: 'arrival' })
    for (const gateway of asked) this.#runGateway(gateway, nowUs)
  }

  #drawRequest(nowUs: number): Request {
    const { tenants, nodes } = this.#setUp
    const isTenant = tenants !== undefined && this.#random() < tenants.share
    const tenant = isTenant ? Math.floor(this.#random() * tenants.count) : -1
    const node = isTenant ? tenant % nodes : Math.floor(this.#random() * nodes)
    return { arrivedUs: nowUs, tenant, node, wanted: 0 }
  }

  #runGateway(gateway: Gateway, nowUs: number): void {
    if (gateway.isRunning) return
    if (this.#setUp.areGatewaysInOneProcess && this.#gateways.some(({ isRunning }) => isRunning)) {
      this.#waiting.add(gateway)
      return
    }
    gateway.isRunning = true
    const { endUs, outcomes, sent } = gateway.runTurn(nowUs)
    this.#events.add(endUs, { kind: 'turn done', gateway, outcomes, sent })
  }

  #endTurn(
    {
      gateway,
      outcomes,
      sent,
    }: {
      readonly gateway: Gateway
      readonly outcomes: readonly Outcome[]
      readonly sent: readonly Command[]
    },
    nowUs: number,
  ): void {
    this.#finish(outcomes, nowUs)
    for (const command of sent)
      this.#events.add(nowUs + this.#oneWayUs, { kind: 'at node', node: command.node, command })
    gateway.isRunning = false
    if (gateway.inbox.length > 0) this.#waiting.add(gateway)
    for (const next of this.#waiting) {
      this.#waiting.delete(next)
      this.#runGateway(next, nowUs)
      if (this.#setUp.areGatewaysInOneProcess) return
    }
  }

  #reachNode(index: number, command: Command, nowUs: number): void {
    const node = this.#nodeAt(index)
    if (!node.isAlive) {
      this.#events.add(command.sinceUs + gatewayRules.storeTimeoutUs, { kind: 'deadline', command })
      return
    }
    node.inbox.push(command)
    if (!node.isBusy) this.#runNode(index, nowUs)
  }

  #runNode(index: number, nowUs: number): void {
    const node = this.#nodeAt(index)
    if (node.inbox.length === 0) node.becomeIdle(nowUs)
    else {
      const { answered, endUs } = node.run(nowUs)
      this.#events.add(endUs, { kind: 'node done', node: index, answered })
    }
  }

  #failNode(nowUs: number): void {
    const failed = this.#setUp.failure?.node ?? 0
    const node = this.#nodeAt(failed)
    for (const command of node.inbox)
      this.#events.add(nowUs + gatewayRules.storeTimeoutUs, { kind: 'deadline', command })
    node.fail()
  }

  #promoteNode(nowUs: number): void {
    const { failure } = this.#setUp
    if (failure)
      this.#nodeAt(failure.node).promote((failure.atSeconds * 1000 - failure.replicationLagMs) * 1000, nowUs)
  }

  #expire(command: Command, nowUs: number): void {
    const { gateway, node } = command
    const wasOpen = gateway.openNodes.has(node)
    this.#finish(gateway.expire(command, nowUs), nowUs)
    this.#finish(gateway.expirePending(node, nowUs), nowUs)
    const isOpen = gateway.openNodes.has(node)
    if (isOpen && !wasOpen) this.#probeLater(gateway, node, nowUs)
    else if (!isOpen && !gateway.repaying.has(node) && gateway.hasLocal(node)) {
      gateway.repaying.add(node)
      this.#events.add(nowUs + gatewayRules.addTimeoutUs, { kind: 'repaid', gateway, node })
    }
    this.#events.add(nowUs + gatewayRules.storeTimeoutUs, { kind: 'pending deadline', gateway, node })
    this.#runGateway(gateway, nowUs)
  }

  #probeLater(gateway: Gateway, node: number, nowUs: number): void {
    this.#events.add(nowUs + gatewayRules.probeEveryUs, { kind: 'probe', gateway, node })
  }

  #probe(gateway: Gateway, node: number, nowUs: number): void {
    if (this.#nodeAt(node).isAlive) {
      this.#addLocal(gateway, node, nowUs)
      gateway.closeBreaker(node)
    } else if (nowUs < this.#endUs) this.#probeLater(gateway, node, nowUs)
  }

  /** Opens the circuit breaker of a node that did not accept the repayment in time. */
  #endRepayment(gateway: Gateway, node: number, nowUs: number): void {
    gateway.repaying.delete(node)
    if (gateway.openNodes.has(node)) return
    if (this.#nodeAt(node).isAlive) this.#addLocal(gateway, node, nowUs)
    else {
      this.#finish(gateway.openBreaker(node, nowUs), nowUs)
      this.#probeLater(gateway, node, nowUs)
    }
  }

  #addLocal(gateway: Gateway, node: number, nowUs: number): void {
    for (const [tenant, { window, units }] of gateway.takeLocal(node))
      this.#nodeAt(node).count(tenant, window, units, nowUs)
  }

  #replaceGateways(nowUs: number): void {
    const { upgrade } = this.#setUp
    if (!upgrade) return
    const { atATime, restartSeconds } = upgrade
    for (const gateway of this.#gateways.slice(this.#replaced, this.#replaced + atATime)) {
      gateway.isServing = false
      gateway.restart(nowUs)
      this.#runGateway(gateway, nowUs)
      this.#events.add(nowUs + restartSeconds * 1e6, { kind: 'start', gateway })
    }
    this.#replaced += atATime
    this.#serving = this.#gateways.filter(({ isServing }) => isServing)
    if (this.#replaced < this.#gateways.length)
      this.#events.add(nowUs + restartSeconds * 1e6, { kind: 'replace' })
  }

  #finish(outcomes: readonly Outcome[], nowUs: number): void {
    const second = Math.floor(nowUs / 1e6)
    const latenciesUs = (this.#latenciesUs[second] ??= [])
    for (const { request, isAdmitted, window, isLocal } of outcomes) {
      latenciesUs.push(nowUs - request.arrivedUs)
      if (isLocal) this.#withoutRedis[second] = (this.#withoutRedis[second] ?? 0) + 1
      if (request.tenant < 0) continue
      const key = `${request.tenant} ${window}`
      const verdict = this.#verdicts.get(key) ?? { admitted: 0, refused: 0 }
      this.#verdicts.set(key, verdict)
      if (isAdmitted) verdict.admitted += 1
      else verdict.refused += 1
    }
  }

  #summarize(): Simulated {
    const all = this.#latenciesUs.flat()
    const commands = sum(this.#nodes.map((node) => node.commands))
    const quota = this.#setUp.tenants?.quota ?? Infinity
    // Leaves out the last window, which has not ended.
    const last = windowAt(this.#setUp.tenants, this.#endUs - 1)
    const verdicts = [...this.#verdicts]
      .filter(([key]) => Number(key.split(' ')[1]) < last)
      .map(([, verdict]) => verdict)
    return {
      decided: all.length,
      redisUsADecision: sum(this.#nodes.map((node) => node.busyUs)) / all.length,
      decisionsACommand: all.length / commands,
      redisBusy: this.#busy(this.#nodes),
      gatewayBusy: this.#busy(this.#gateways),
      seconds: Array.from(
        this.#latenciesUs.slice(0, Math.ceil(this.#setUp.seconds)),
        (latenciesUs, second) => ({
          decided: latenciesUs.length,
          withoutRedis: this.#withoutRedis[second] ?? 0,
          latency: latencyOf(latenciesUs),
        }),
      ),
      latency: latencyOf(all),
      tenants: {
        admitted: sum(verdicts.map(({ admitted }) => admitted)),
        overQuota: sum(verdicts.map(({ admitted }) => Math.max(0, admitted - quota))),
        refusedEarly: sum(
          verdicts.map(({ admitted, refused }) => Math.min(refused, Math.max(0, quota - admitted))),
        ),
        refused: sum(verdicts.map(({ refused }) => refused)),
      },
    }
  }

  #busy(processes: readonly { readonly busyUs: number }[]): { mean: number; max: number } {
    const shares = processes.map(({ busyUs }) => busyUs / this.#endUs)
    return {
      mean: sum(shares) / shares.length,
      max: shares.reduce((most, share) => Math.max(most, share), 0),
    }
  }

  #nodeAt(index: number): RedisNode {
    const node = this.#nodes[index]
    if (!node) throw new RangeError(`no node ${index}`)
    return node
  }
}

function latencyOf(latenciesUs: readonly number[]): Latency {
  const sorted = Float64Array.from(latenciesUs).sort()
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  return { p50Us: at(0.5), p99Us: at(0.99), maxUs: sorted.at(-1) ?? 0 }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
