import { parseArgs } from 'node:util'
import { installNpmPackages } from '../test/support/run/packages.ts'
import { familyOf, readCpuTime } from './measure/process-usage.ts'
import { load } from './measure/load.ts'
import { openStage, type OnStage, type Stage } from './measure/stage.ts'
import { median } from './report/results.ts'
import { scenarios, type Scenario } from './scenarios.ts'
import type { Subject } from './subjects/subject.ts'

// Compares the CPU of a request between warm subjects, in turns of a second:
//
//     npm run bench:turns -- --rounds 15 --warmup 15 pass/sluice limited/sluice pass/nginx
//
// `npm run bench` starts each subject anew for each round, and so also measures V8's compiler when other programs use the machine. Here all
// subjects keep running, and each turn is compared with the turn of the first name in the same round.

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '15' },
    warmup: { type: 'string', default: '15' },
    connections: { type: 'string', default: '64' },
  },
})
const connections = Number(values.connections)

type Contender = { readonly name: string; readonly scenario: Scenario; readonly subject: Subject }

function findContender(name: string): Contender {
  const [scenarioName, ...rest] = name.split('/')
  const scenario = scenarios.find((each) => each.name === scenarioName)
  const subject = scenario?.subjects.find((each) => each.name === rest.join('/'))
  if (!scenario || !subject)
    throw new RangeError(`${name}: needs SCENARIO/SUBJECT, as in npm run bench -- --help`)
  return { name, scenario, subject }
}

type Running = Contender & { readonly at: OnStage; readonly cpuUs: number[] }

/** Starts the subjects one after another, and calls `use` while all are running. */
async function withAll(
  stage: Stage,
  contenders: readonly Contender[],
  running: readonly Running[],
  use: (running: readonly Running[]) => Promise<void>,
): Promise<void> {
  const [next, ...others] = contenders
  if (!next) return use(running)
  await stage.withSubject(next.subject, next.scenario, (at) =>
    withAll(stage, others, [...running, { ...next, at, cpuUs: [] }], use),
  )
}

async function takeTurn({ scenario, at }: Running, seconds: number): Promise<number> {
  const pids = familyOf(at.pid)
  const before = readCpuTime(pids)
  const { path, protocol, script } = scenario
  const { requests, notOk } = await load({ port: at.port, path, protocol, script, connections, seconds })
  if (scenario.status === 200 && notOk > 0) throw new Error(`${scenario.name}: ${notOk} failed`)
  const after = readCpuTime(pids)
  return (after.userUs + after.systemUs - before.userUs - before.systemUs) / requests
}

function quartile(sorted: readonly number[], share: number): string {
  return (sorted[Math.floor(sorted.length * share)] ?? NaN).toFixed(2)
}

installNpmPackages(import.meta.dirname)
const stage = await openStage(connections)
await withAll(stage, positionals.map(findContender), [], async (running) => {
  for (const each of running) await takeTurn(each, Number(values.warmup))
  for (let round = 0; round < Number(values.rounds); round++)
    for (const each of round % 2 === 0 ? running : running.toReversed())
      each.cpuUs.push(await takeTurn(each, 1))
  const [first] = running
  for (const { name, cpuUs } of running) {
    const ratios = cpuUs
      .map((us, round) => us / (first?.cpuUs[round] ?? NaN))
      .sort((one, other) => one - other)
    console.log(
      `${name}: ${median(cpuUs).toFixed(1)} µs; of ${first?.name} ${quartile(ratios, 0.5)} (quartiles ${quartile(ratios, 0.25)}, ${quartile(ratios, 0.75)})`,
    )
  }
})
await stage.close()
