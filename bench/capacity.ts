import { parseArgs } from 'node:util'
import { measuredAlgorithms, readCosts, writeCosts, type Costs } from './capacity/costs.ts'
import { measureCosts, observe } from './capacity/measure.ts'
import { planFor, type Demand, type Plan } from './capacity/plan.ts'
import type { SetUp } from './capacity/set-up.ts'
import { simulate } from './capacity/simulation.ts'

const usage = `npm run capacity -- [options]      how many gateways and Redis masters a number of decisions takes

  --decisions N        decisions a second (10000)
  --rules N            rules that count each of them (1)
  --algorithm NAME     ${measuredAlgorithms.join(', ')} (fixed)
  --clients N          clients with a running window (1000000)
  --busiest N          percent of all decisions that one client has (0)
  --round-trip MS      between gateway and Redis (0.5)
  --busy N             percent of its core that a process may use (60)
  --gateways N         processes; as many as are needed if not given
  --masters N          Redis masters; as many as are needed if not given

npm run capacity -- --storm          200 gateways and 64 masters with tenants over their quotas, a failing
                                     host and a rolling upgrade, by the second
npm run capacity -- --measure        measures what a decision costs on this machine (bench/capacity/costs.json)
npm run capacity -- --check          measures costs, and then set-ups that they were not taken from, beside their forecast
`

const { values } = parseArgs({
  options: {
    decisions: { type: 'string', default: '10000' },
    rules: { type: 'string', default: '1' },
    algorithm: { type: 'string', default: 'fixed' },
    clients: { type: 'string', default: '1000000' },
    busiest: { type: 'string', default: '0' },
    'round-trip': { type: 'string', default: '0.5' },
    busy: { type: 'string', default: '60' },
    gateways: { type: 'string' },
    masters: { type: 'string' },
    storm: { type: 'boolean', default: false },
    measure: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

function number(name: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (!(value >= least && value <= most))
    throw new RangeError(`--${name} ${text}: needs a number from ${least} to ${most}`)
  return value
}

function readDemand(): Demand {
  const algorithm = measuredAlgorithms.find((name) => name === values.algorithm)
  if (!algorithm)
    throw new RangeError(`--algorithm ${values.algorithm}: needs one of ${measuredAlgorithms.join(', ')}`)
  return {
    decisionsPerSecond: number('decisions', values.decisions, 1, 1e7),
    rules: number('rules', values.rules, 1, 100),
    algorithm,
    clients: number('clients', values.clients, 1, 1e10),
    busiestClient: number('busiest', values.busiest, 0, 100) / 100,
    roundTripUs: number('round-trip', values['round-trip'], 0.01, 100) * 1000,
    busy: number('busy', values.busy, 1, 95) / 100,
    gateways: values.gateways === undefined ? undefined : number('gateways', values.gateways, 1, 10_000),
    masters: values.masters === undefined ? undefined : number('masters', values.masters, 1, 1_000),
  }
}

const count = (value: number): string => Math.round(value).toLocaleString('en')
const percent = (share: number): string => `${(share * 100).toFixed(0)} %`
const milliseconds = (us: number): string => `${(us / 1000).toFixed(2)} ms`

function bytes(value: number): string {
  const unit = value >= 1e9 ? { name: 'GB', size: 1e9 } : { name: 'MB', size: 1e6 }
  return `${(value / unit.size).toFixed(1)} ${unit.name}`
}

function printPlan(demand: Demand, plan: Plan, { machine }: Costs): void {
  const { gateways, masters, network, latency, failsFirst } = plan
  const servers = masters.count === 1 ? '1 server' : `a cluster of ${masters.count} masters`
  const lines = [
    [
      'demand',
      `${count(demand.decisionsPerSecond)} decisions a second, ${demand.rules} × ${demand.algorithm}, ${count(demand.clients)} clients`,
    ],
    [
      'gateways',
      `${gateways.count} processes, each ${percent(gateways.busy)} of a core (at ${percent(demand.busy)}: ${gateways.needed})`,
    ],
    ['Redis', `${servers}, each ${percent(masters.busy)} of a core, the busiest ${percent(masters.busiest)}`],
    [
      '',
      `${plan.redisUsADecision.toFixed(1)} µs a decision, ${plan.decisionsACommand.toFixed(1)} decisions a command`,
    ],
    [
      'memory',
      `${bytes(plan.memoryBytes)} of counters, ${bytes(plan.memoryBytes / masters.count)} a master, as much again for replicas`,
    ],
    [
      'network',
      `${bytes(network.in)} a second to Redis, ${bytes(network.out)} from it; ${count(gateways.count)} connections a master`,
    ],
    [
      'latency',
      `p50 ${milliseconds(latency.p50Us)}, p99 ${milliseconds(latency.p99Us)}, of which ${milliseconds(demand.roundTripUs)} on the network`,
    ],
    ['fails first', `${failsFirst.what}, at ${count(failsFirst.atDecisionsPerSecond)} decisions a second`],
    ['costs of', `${machine.processor}, Node ${machine.node}, ${machine.redis}, ${machine.date}`],
  ]
  for (const [name = '', text = ''] of lines) console.log(name.padEnd(13) + text)
}

/** 200 gateways and 64 masters; two tenants request more than their quotas. */
const storm: SetUp = {
  gateways: 200,
  nodes: 64,
  decisionsPerSecond: 200_000,
  rules: 2,
  algorithm: 'fixed',
  roundTripUs: 500,
  seconds: 8,
  seed: 20_261,
  tenants: { count: 2, share: 0.5, quota: 40_000, windowMs: 1_000, isLeased: false },
  failure: { node: 7, atSeconds: 1.5, promotedAfterSeconds: 2, replicationLagMs: 1 },
  upgrade: { fromSeconds: 5, atATime: 20, restartSeconds: 0.3 },
}

function printStorm(costs: Costs): void {
  for (const isLeased of [false, true]) {
    const { tenants } = storm
    if (!tenants) continue
    const {
      seconds,
      tenants: seen,
      redisBusy,
    } = simulate({ ...storm, tenants: { ...tenants, isLeased } }, costs)
    console.log(isLeased ? '\nwith lease: auto' : 'without leases')
    for (const [second, { decided, withoutRedis, latency }] of seconds.entries())
      console.log(
        `${String(second).padStart(4)} s  ${count(decided)} decisions, ${count(withoutRedis)} without Redis, ` +
          `p50 ${milliseconds(latency.p50Us)}, p99 ${milliseconds(latency.p99Us)}, at most ${milliseconds(latency.maxUs)}`,
      )
    console.log(
      `tenants: ${count(seen.admitted)} admitted, ${count(seen.overQuota)} of them over a quota; ${count(seen.refused)} refused, ` +
        `${count(seen.refusedEarly)} of them early; Redis ${percent(redisBusy.mean)} busy`,
    )
  }
}

/** Set-ups unlike the one whose costs are measured: that is one gateway that asks one server about one rule. */
const unfitted: readonly { readonly name: string; readonly setUp: Partial<SetUp> }[] = [
  { name: 'one gateway, 8,000 a second, requests at random', setUp: { decisionsPerSecond: 8_000 } },
  {
    name: 'four gateways, 6,000 a second, two sliding windows',
    setUp: { gateways: 4, decisionsPerSecond: 6_000, rules: 2, algorithm: 'sliding' },
  },
  {
    name: 'three masters, 5,000 a second, token buckets',
    setUp: { nodes: 3, decisionsPerSecond: 5_000, algorithm: 'token-bucket' },
  },
]

/**
 * Costs and set-ups are measured in the same minutes, because the cost of waking up a process depends on everything else that the machine
 * does.
 */
async function check(): Promise<void> {
  // No request arrives over HTTP here.
  const { costs, loopbackUs } = await measureCosts(console.error, () => Promise.resolve(0))
  const usual: SetUp = {
    gateways: 1,
    areGatewaysInOneProcess: true,
    nodes: 1,
    decisionsPerSecond: 1,
    rules: 1,
    algorithm: 'fixed',
    roundTripUs: loopbackUs,
    seconds: 5,
    seed: 1,
  }
  for (const { name, setUp } of unfitted) {
    const seen = await observe({ ...usual, ...setUp })
    const { arrivalsUs } = seen
    const forecast = simulate({ ...usual, ...setUp, arrivalsUs, seconds: usual.seconds + 1 }, costs)
    const ratio = (figure: number, measured: number): string =>
      `${figure.toFixed(2)} ÷ ${measured.toFixed(2)} = ${(figure / measured).toFixed(2)}`
    console.log(
      `${name}: forecast ÷ measured: µs of Redis a decision ${ratio(forecast.redisUsADecision, seen.redisUsADecision)}, ` +
        `decisions a command ${ratio(forecast.decisionsACommand, seen.decisionsACommand)}`,
    )
  }
}

if (values.help) console.log(usage)
else if (values.measure) writeCosts((await measureCosts(console.error)).costs)
else if (values.check) await check()
else if (values.storm) printStorm(readCosts())
else {
  const costs = readCosts()
  const demand = readDemand()
  printPlan(demand, planFor(demand, costs), costs)
}
