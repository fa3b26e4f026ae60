import { measureAtFixedRate } from './measure/fixed-rate.ts'
import { measureMemory } from './measure/idle-connections.ts'
import { currentLoad, describeMachine } from './measure/machine.ts'
import { measureRound } from './measure/round.ts'
import type { Options } from './options.ts'
import { median, type LatencySample, type Measured, type Results } from './report/results.ts'
import { proxies, scenarios, type Scenario } from './scenarios.ts'
import { openStage, type Stage } from './measure/stage.ts'
import type { Subject } from './subjects/subject.ts'
import { validateBefore } from './measure/validate.ts'
import { warmUp } from './measure/load.ts'

/** Reports the progress of a run. */
export type Say = (line: string) => void

/** One subject in one scenario, measured once in every round. */
type Contender = { readonly scenario: Scenario; readonly subject: Subject }

/** The name of the subject whose requests go to the backend without any proxy. */
export const noProxy = 'no proxy'

/** Runs everything that the options ask for. Rejects without figures if a subject does not do its work. */
export async function runBenchmark(options: Options, say: Say): Promise<Results> {
  const { rounds, seconds, warmupRequests, connections, idleConnections } = options
  const missing = new Set<string>()
  const contenders = chooseContenders(options, missing)
  const results: Results = {
    machine: describeMachine(),
    options: { rounds, seconds, warmupRequests, connections, idleConnections },
    missing: [...missing],
    cpu: contenders.map(({ scenario, subject }) => measuredOf(scenario.name, subject.name)),
    latency: [],
    latencyRate: 0,
    memory: [],
  }
  const stage = await openStage(connections)
  try {
    for (let round = 1; round <= rounds; round++) {
      for (const index of order(contenders.length, round)) {
        const contender = contenders[index]
        if (!contender) continue
        const { scenario, subject } = contender
        const sample = await measureRound(stage, scenario, subject, options)
        results.cpu[index]?.samples.push(sample)
        say(`round ${round}, ${scenario.name}, ${subject.name}: ${sample.cpuUs.toFixed(1)} µs a request`)
      }
    }
    if (wants(options, 'latency')) await measureLatencies(stage, options, results, say)
    if (wants(options, 'memory')) await measureMemories(stage, options, results, say)
  } finally {
    await stage.close()
  }
  results.machine.load.after = currentLoad()
  return results
}

async function measureLatencies(stage: Stage, options: Options, results: Results, say: Say): Promise<void> {
  const { rounds, seconds, warmupRequests, connections } = options
  const pass = passScenario()
  const subjects = chooseSubjects(proxies, options)
  results.latencyRate = Math.floor(slowestSaturation(results) / 2)
  const fixedRate = { path: pass.path, requestsPerSecond: results.latencyRate, seconds, connections }
  const lines = [noProxy, ...subjects.map(({ name }) => name)].map((name) => measuredOf('latency', name))
  results.latency.push(...(lines as Results['latency']))

  for (let round = 1; round <= rounds; round++) {
    for (const index of order(subjects.length + 1, round)) {
      const subject = subjects[index - 1]
      const measure = async ({ port }: { readonly port: number }): Promise<LatencySample> => {
        if (subject) await validateBefore(pass, subject, port)
        await warmUp({ port, path: pass.path, connections }, warmupRequests)
        return measureAtFixedRate({ ...fixedRate, port })
      }
      const sample = subject
        ? await stage.withSubject(subject, pass, measure)
        : await measure({ port: stage.backendPort })
      results.latency[index]?.samples.push(sample)
      say(`round ${round}, latency, ${subject?.name ?? noProxy}: p50 ${sample.p50Us.toFixed(0)} µs`)
    }
  }
}

async function measureMemories(stage: Stage, options: Options, results: Results, say: Say): Promise<void> {
  const pass = passScenario()
  const subjects = chooseSubjects(pass.subjects, options)
  for (const { name } of subjects) results.memory.push(measuredOf('memory', name))
  for (let round = 1; round <= options.rounds; round++) {
    for (const index of order(subjects.length, round)) {
      const subject = subjects[index]
      if (!subject) continue
      const sample = await stage.withSubject(subject, pass, async ({ pid, port }) => {
        await validateBefore(pass, subject, port)
        return measureMemory(pid, port, pass.path, options.idleConnections)
      })
      results.memory[index]?.samples.push(sample)
      say(`round ${round}, memory, ${subject.name}: ${(sample.restBytes / 1e6).toFixed(0)} MB`)
    }
  }
}

/** The rate of the slowest proxy. Half of it is a rate that all proxies can serve. */
function slowestSaturation({ cpu }: Results): number {
  const names = new Set(proxies.map(({ name }) => name))
  const rates = cpu
    .filter(({ scenario, subject }) => scenario === 'pass' && names.has(subject))
    .map(({ samples }) => median(samples.map(({ requestsPerSecond }) => requestsPerSecond)))
  return Math.min(...rates)
}

function chooseContenders(options: Options, missing: Set<string>): Contender[] {
  for (const { subjects } of scenarios) {
    for (const subject of subjects) {
      const reason = subject.missing()
      if (reason !== undefined) missing.add(reason)
    }
  }
  // The rate for latency is derived from `pass`.
  const wanted = (name: string): boolean =>
    wants(options, name) || (name === 'pass' && wants(options, 'latency'))
  return scenarios
    .filter(({ name }) => wanted(name))
    .flatMap((scenario) =>
      chooseSubjects(scenario.subjects, options).map((subject) => ({ scenario, subject })),
    )
}

function chooseSubjects(subjects: readonly Subject[], { subjects: names }: Options): Subject[] {
  const isWanted = ({ name }: Subject): boolean =>
    names === undefined || names.includes(name) || names.includes(name.split(',')[0] ?? '')
  return subjects.filter((subject) => subject.missing() === undefined && isWanted(subject))
}

function wants({ scenarios: names }: Options, name: string): boolean {
  return names === undefined || names.includes(name)
}

function passScenario(): Scenario {
  const pass = scenarios.find(({ name }) => name === 'pass')
  if (!pass) throw new Error('there is no scenario `pass`')
  return pass
}

/** Every other round runs in reverse order, so that no subject always follows the same neighbour. */
function order(length: number, round: number): number[] {
  const indices = Array.from({ length }, (_, index) => index)
  return round % 2 === 1 ? indices : indices.reverse()
}

function measuredOf<Kind>(scenario: string, subject: string): Measured<Kind> {
  return { scenario, subject, samples: [] }
}
