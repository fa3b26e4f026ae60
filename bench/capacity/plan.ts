import type { Costs, MeasuredAlgorithm } from './costs.ts'
import type { SetUp } from './set-up.ts'
import { simulate, type Latency } from './simulation.ts'

export type Demand = {
  readonly decisionsPerSecond: number
  readonly rules: number
  readonly algorithm: MeasuredAlgorithm
  /** Clients with a running window at the same time. */
  readonly clients: number
  readonly roundTripUs: number
  /** The busiest client's share of all decisions, from 0 to 1. */
  readonly busiestClient: number
  /** The average share of its core that a process may use, from 0 to 1. */
  readonly busy: number
  /** The number of gateways; undefined for as many as needed. */
  readonly gateways: number | undefined
  readonly masters: number | undefined
}

export type Plan = {
  readonly gateways: { readonly count: number; readonly busy: number; readonly needed: number }
  readonly masters: { readonly count: number; readonly busy: number; readonly busiest: number }
  readonly redisUsADecision: number
  readonly decisionsACommand: number
  readonly memoryBytes: number
  /** Bytes a second, for all masters together. */
  readonly network: { readonly in: number; readonly out: number }
  readonly latency: Latency
  /** The process that runs out of CPU first, and the decisions a second at which it does. */
  readonly failsFirst: {
    readonly what: 'gateways' | 'a Redis master' | 'none up to ten times'
    readonly atDecisionsPerSecond: number
  }
}

/** Enough decisions to show how busy processes are, and how long 99 of 100 requests wait. */
const ENOUGH_DECISIONS = 150_000

/**
 * Simulates to find how many processes a demand needs.
 *
 * @param decisions the number of decisions in each simulation
 */
export function planFor(demand: Demand, costs: Costs, decisions = ENOUGH_DECISIONS): Plan {
  const { decisionsPerSecond, rules, busy } = demand
  const { requestUs, commandUs, decisionUs } = costs.gateway
  const needed = Math.ceil((decisionsPerSecond * (requestUs + commandUs + decisionUs)) / 1e6 / busy)
  const gateways = demand.gateways ?? needed
  const chargeUs = rules * costs.redis.chargeUs[demand.algorithm]
  let masters = demand.masters ?? Math.max(1, Math.floor((decisionsPerSecond * chargeUs) / 1e6))
  let seen = simulate(setUpOf(demand, gateways, masters, decisions), costs)
  while (demand.masters === undefined && seen.redisBusy.mean > busy) {
    masters = Math.max(masters + 1, Math.ceil((masters * seen.redisBusy.mean) / busy))
    seen = simulate(setUpOf(demand, gateways, masters, decisions), costs)
  }
  const commands = decisionsPerSecond / seen.decisionsACommand
  const charges = decisionsPerSecond * rules
  const { network } = costs
  return {
    gateways: { count: gateways, busy: seen.gatewayBusy.mean, needed },
    masters: { count: masters, busy: seen.redisBusy.mean, busiest: seen.redisBusy.max },
    redisUsADecision: seen.redisUsADecision,
    decisionsACommand: seen.decisionsACommand,
    memoryBytes: demand.clients * rules * costs.clientBytes[demand.algorithm],
    network: {
      in: commands * network.commandIn + charges * network.chargeIn,
      out: commands * network.commandOut + charges * network.chargeOut,
    },
    latency: seen.latency,
    failsFirst: findFirstFailure(demand, gateways, masters, costs, decisions),
  }
}

/** Simulates more and more decisions a second until a process runs out of CPU. */
function findFirstFailure(
  demand: Demand,
  gateways: number,
  masters: number,
  costs: Costs,
  decisions: number,
): Plan['failsFirst'] {
  for (let factor = 1; factor <= 10; factor *= 1.1) {
    const decisionsPerSecond = demand.decisionsPerSecond * factor
    const { gatewayBusy, redisBusy } = simulate(
      setUpOf({ ...demand, decisionsPerSecond }, gateways, masters, decisions),
      costs,
    )
    const busiest = Math.max(gatewayBusy.mean, redisBusy.max)
    if (busiest >= 0.95)
      return {
        what: gatewayBusy.mean > redisBusy.max ? 'gateways' : 'a Redis master',
        atDecisionsPerSecond: decisionsPerSecond,
      }
  }
  return { what: 'none up to ten times', atDecisionsPerSecond: demand.decisionsPerSecond * 10 }
}

function setUpOf(demand: Demand, gateways: number, nodes: number, decisions: number): SetUp {
  const { decisionsPerSecond, rules, algorithm, roundTripUs, busiestClient } = demand
  const seconds = decisions / decisionsPerSecond
  const setUp = { gateways, nodes, decisionsPerSecond, rules, algorithm, roundTripUs, seconds, seed: 1 }
  if (busiestClient === 0) return setUp
  const quota = Number.MAX_SAFE_INTEGER
  return { ...setUp, tenants: { count: 1, share: busiestClient, quota, windowMs: 60_000, isLeased: false } }
}
