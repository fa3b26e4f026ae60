import { join } from 'node:path'
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { describeMachine } from '../measure/machine.ts'
import { runBenchmark } from '../run.ts'
import { readOptions } from '../options.ts'
import { median } from '../report/results.ts'
import { measuredAlgorithms, type Costs, type MeasuredAlgorithm } from './costs.ts'
import type { SetUp } from './set-up.ts'
import { chargesOf, openStage, rulesOf, type Stage } from './stage.ts'

/** The number of decisions in one command when the cost of a further decision is measured. */
const MANY = 32
const CLIENTS = 5_000

/**
 * Measures `Costs` on this machine, in about a minute. Nothing else should run meanwhile.
 *
 * @param measureRequest measures the microseconds of a request through a gateway
 * @returns the costs, and the microseconds between a gateway and Redis on this machine, without the time in which either uses a core: a
 * process that slept waits for a core
 */
export async function measureCosts(
  say: (line: string) => void,
  measureRequest: () => Promise<number> = () => measureRequestUs(say),
): Promise<{ readonly costs: Costs; readonly loopbackUs: number }> {
  const chargeUs = new Map<MeasuredAlgorithm, number>()
  const commandUs = new Map<MeasuredAlgorithm, number>()
  const clientBytes = new Map<MeasuredAlgorithm, number>()
  const stage = await openStage(0, 1)
  try {
    for (const algorithm of measuredAlgorithms) {
      const [one, many] = [
        await measureCommands(stage, algorithm, 1),
        await measureCommands(stage, algorithm, MANY),
      ]
      chargeUs.set(algorithm, (many.redisUs - one.redisUs) / (MANY - 1))
      commandUs.set(algorithm, (await measureBusyCommandUs(algorithm)) - (chargeUs.get(algorithm) ?? 0))
      clientBytes.set(algorithm, await measureMemory(stage, algorithm))
      say(
        `${algorithm}: a charge ${chargeUs.get(algorithm)?.toFixed(2)} µs, ${clientBytes.get(algorithm)} bytes a client`,
      )
    }
    const one = await measureCommands(stage, 'fixed', 1)
    const many = await measureCommands(stage, 'fixed', MANY)
    const more = (figure: keyof Commands): number => (many[figure] - one[figure]) / (MANY - 1)
    const first = (figure: keyof Commands): number => one[figure] - more(figure)
    const wakeUs: { idleUs: number; us: number }[] = []
    for (const pauseUs of [0, 300, 1_000, 10_000]) {
      const { redisUs, elapsedUs } = await measureCommands(stage, 'fixed', 1, pauseUs)
      wakeUs.push({
        idleUs: Math.round(elapsedUs - redisUs),
        us: round(redisUs - (commandUs.get('fixed') ?? 0) - more('redisUs')),
      })
      say(`after ${pauseUs} µs: ${redisUs.toFixed(1)} µs a command`)
    }
    const { processor } = describeMachine()
    const costs: Costs = {
      machine: {
        date: new Date().toISOString().slice(0, 10),
        processor,
        node: process.version,
        redis: stage.version,
      },
      redis: { wakeUs, commandUs: toRecord(commandUs, round), chargeUs: toRecord(chargeUs, round) },
      gateway: {
        requestUs: round(await measureRequest()),
        commandUs: round(first('gatewayUs')),
        decisionUs: round(more('gatewayUs')),
      },
      network: {
        commandIn: Math.round(first('bytesIn')),
        commandOut: Math.round(first('bytesOut')),
        chargeIn: Math.round(more('bytesIn')),
        chargeOut: Math.round(more('bytesOut')),
      },
      clientBytes: toRecord(clientBytes, Math.round),
    }
    // The two processes may use their cores at the same time.
    const loopbackUs = Math.max(0, one.elapsedUs - one.redisUs - one.gatewayUs)
    return { costs, loopbackUs }
  } finally {
    await stage.close()
  }
}

/** Figures for each command. */
type Commands = Readonly<Record<'redisUs' | 'gatewayUs' | 'elapsedUs' | 'bytesIn' | 'bytesOut', number>>

/** Sends commands one after another, each with this many decisions, with pauses in between. */
async function measureCommands(
  stage: Stage,
  algorithm: MeasuredAlgorithm,
  decisions: number,
  pauseUs = 0,
): Promise<Commands> {
  const policies = rulesOf(algorithm, 1)
  const [limiter] = stage.limiters
  let asked = 0
  const decide = async (): Promise<void> => {
    const all = Array.from({ length: decisions }, () =>
      Promise.resolve(limiter?.decide(chargesOf(policies, asked++ % CLIENTS))),
    )
    await Promise.all(all)
  }
  await stage.flush()
  for (let command = 0; command < 2_000; command++) await decide()
  const commands = pauseUs >= 10_000 ? 200 : 3_000
  const [bytesIn, bytesOut] = [
    await stage.readInfo('stats', inputBytes),
    await stage.readInfo('stats', outputBytes),
  ]
  const [redisUs, gateway, startMs] = [stage.readCpuUs(), process.cpuUsage(), performance.now()]
  for (let command = 0; command < commands; command++) {
    await decide()
    await pause(pauseUs)
  }
  const used = process.cpuUsage(gateway)
  return {
    redisUs: (stage.readCpuUs() - redisUs) / commands,
    gatewayUs: (used.user + used.system) / commands,
    elapsedUs: ((performance.now() - startMs) * 1000) / commands,
    bytesIn: ((await stage.readInfo('stats', inputBytes)) - bytesIn) / commands,
    bytesOut: ((await stage.readInfo('stats', outputBytes)) - bytesOut) / commands,
  }
}

const inputBytes = /total_net_input_bytes:(\d+)/
const outputBytes = /total_net_output_bytes:(\d+)/

/** A timer would lengthen a pause of a fraction of a millisecond. */
async function pause(pauseUs: number): Promise<void> {
  if (pauseUs >= 1_000) {
    await wait(pauseUs / 1000)
    return
  }
  const endMs = performance.now() + pauseUs / 1000
  while (performance.now() < endMs) await nextTurn()
}

/**
 * A command with one decision, for a Redis that finds the commands of many connections at once: it is stopped until all have been written,
 * so that they share the cost of waking it up.
 */
async function measureBusyCommandUs(algorithm: MeasuredAlgorithm): Promise<number> {
  const connections = 64
  const rounds = 60
  const stage = await openStage(0, connections)
  const policies = rulesOf(algorithm, 1)
  try {
    const [pid = 0] = stage.pids
    let usedUs = 0
    for (let round = 0; round < rounds + 5; round++) {
      process.kill(pid, 'SIGSTOP')
      const beforeUs = stage.readCpuUs()
      const decided = stage.limiters.map((limiter, client) =>
        limiter.decide(chargesOf(policies, round * 64 + client)),
      )
      await wait(5)
      process.kill(pid, 'SIGCONT')
      await Promise.all(decided)
      // The first commands compile the script and allocate buffers.
      if (round >= 5) usedUs += stage.readCpuUs() - beforeUs
    }
    return usedUs / rounds / connections
  } finally {
    await stage.close()
  }
}

/** The bytes for a client that has sent ten requests. */
async function measureMemory(stage: Stage, algorithm: MeasuredAlgorithm): Promise<number> {
  // Buckets that cannot refill before their memory is read.
  const policies = rulesOf(algorithm, 1, 20)
  const clients = 20_000
  await stage.flush()
  const emptyBytes = await stage.readInfo('memory', usedMemory)
  for (let request = 0; request < 10; request++)
    for (let client = 0; client < clients; client += 200)
      await Promise.all(
        Array.from({ length: 200 }, (_, i) =>
          Promise.resolve(stage.limiters[0]?.decide(chargesOf(policies, client + i))),
        ),
      )
  return ((await stage.readInfo('memory', usedMemory)) - emptyBytes) / clients
}

const usedMemory = /used_memory:(\d+)/

/** The CPU of a request through a whole gateway that counts in its own process, measured by `npm run bench`. */
async function measureRequestUs(say: (line: string) => void): Promise<number> {
  const { cpu } = await runBenchmark(
    readOptions(['--scenario', 'embedded', '--subjects', 'sluice', '--rounds', '3']),
    say,
  )
  return median((cpu[0]?.samples ?? []).map(({ cpuUs }) => cpuUs))
}

export type Observed = {
  readonly redisUsADecision: number
  readonly decisionsACommand: number
  /** The times at which the requests arrived, in microseconds: threads and timers let several arrive at once. */
  readonly arrivalsUs: readonly number[]
}

/** Decides requests that arrive as the set-up says, with limiters in this process as the gateways. */
export async function observe(setUp: SetUp): Promise<Observed> {
  const stage = await openStage(setUp.nodes === 1 ? 0 : setUp.nodes, setUp.gateways)
  try {
    await run(stage, { ...setUp, seconds: 1 })
    const idleUs = stage.readCpuUs()
    await wait(1000)
    const idleUsASecond = stage.readCpuUs() - idleUs
    const [redisUs, commands] = [stage.readCpuUs(), await stage.readInfo('commandstats', scripts)]
    const arrivalsUs = await run(stage, setUp)
    const usedUs = stage.readCpuUs() - redisUs - idleUsASecond * setUp.seconds
    return {
      redisUsADecision: usedUs / arrivalsUs.length,
      decisionsACommand: arrivalsUs.length / ((await stage.readInfo('commandstats', scripts)) - commands),
      arrivalsUs,
    }
  } finally {
    await stage.close()
  }
}

const scripts = /cmdstat_evalsha:calls=(\d+)/

async function run(
  stage: Stage,
  { algorithm, rules, decisionsPerSecond, seconds }: SetUp,
): Promise<number[]> {
  const policies = rulesOf(algorithm, rules)
  const arrivalsUs: number[] = []
  const decided: Promise<unknown>[] = []
  const arrivals = new Worker(join(import.meta.dirname, '../measure/arrivals.ts'), {
    workerData: { ratePerSecond: decisionsPerSecond, seconds },
  })
  const startMs = performance.now()
  /** All requests that arrive in a turn of the event loop are sent together. */
  let turnUs: number | undefined
  await new Promise<void>((done) => {
    arrivals.on('message', (due: number) => {
      if (due === 0) done()
      if (turnUs === undefined) setImmediate(() => (turnUs = undefined))
      turnUs ??= (performance.now() - startMs) * 1000
      for (let i = 0; i < due; i++) {
        arrivalsUs.push(turnUs)
        const limiter = stage.limiters[Math.floor(Math.random() * stage.limiters.length)]
        const client = Math.floor(Math.random() * CLIENTS)
        decided.push(Promise.resolve(limiter?.decide(chargesOf(policies, client))))
      }
    })
  })
  await Promise.all(decided)
  await arrivals.terminate()
  return arrivalsUs
}

function toRecord(
  figures: ReadonlyMap<MeasuredAlgorithm, number>,
  write: (figure: number) => number,
): Costs['clientBytes'] {
  return Object.fromEntries(
    [...figures].map(([algorithm, figure]) => [algorithm, write(figure)]),
  ) as Costs['clientBytes']
}

function round(figure: number): number {
  return Math.round(figure * 100) / 100
}
