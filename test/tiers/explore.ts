import { spawn, type ChildProcess } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { atEnd } from '../support/run/at-end.ts'
import type { Failure } from './failure.ts'
import { addSeed } from './seeds.ts'
import { runStep, type Outcome, type Step } from './step.ts'

// Runs tests with random seeds and in random file order, every other round beside busy loops, until it is stopped: `npm run test:explore`,
// or with arguments for vitest: `npm run test:explore -- --project pure test/unit/http/http1`. A failure that recurs with its seed becomes
// a line of test/seeds.json, which `.ci/run` repeats from then on. One that does not recur depends on scheduling: its output is kept.

const RESULTS = 'test-results/explore'
const LIMIT_MINUTES = 60
const given = process.argv.slice(2).join(' ')
const rounds =
  given === ''
    ? ['--project pure', '--project sockets', '--project fault test/fault test/wire test/property']
    : [given]

const loopsRunning = new Set<ChildProcess>()
// If a signal stops this process, it does not reach the end of a round.
atEnd(killLoops)

let found = 0
process.once('SIGINT', () => {
  console.log(`\nstopped: ${found} failures found`)
  process.exit(found > 0 ? 1 : 0)
})

for (let round = 0; ; round++) {
  const seed = randomInt(2 ** 31)
  const loops = round % 2 === 0 ? 0 : 2 * availableParallelism()
  const tests = rounds[Math.floor(round / 2) % rounds.length] ?? ''
  console.log(`\n== round ${round + 1}: seed ${seed}, beside ${loops} busy loops, ${tests}`)
  const outcome = await besideLoops(loops, () => runStep(stepOf(`round ${round + 1}`, seed, tests), RESULTS))
  for (const [file, failures] of Map.groupBy(outcome.tests?.failures ?? [], (failure) => failure.file))
    await note(seed, file, failures, outcome)
  if (!outcome.ok && !outcome.tests) console.log(`seed ${seed}: ended without a result: ${outcome.log}`)
}

function stepOf(name: string, seed: number, tests: string): Step {
  const env = { TEST_SEED: String(seed), TEST_ORDER: 'random' }
  return { name, command: 'npx vitest run', tests, env, limitMinutes: LIMIT_MINUTES }
}

/** Runs the file again, alone, with the same seed. */
async function note(seed: number, file: string, failures: readonly Failure[], first: Outcome): Promise<void> {
  found++
  const { project = '', test = '' } = failures.find((failure) => failure.project !== '') ?? {}
  const again =
    project !== '' &&
    !(await runStep(stepOf(`seed ${seed} of ${file}`, seed, `--project ${project} ${file}`), RESULTS)).ok
  const line = { seed, project, file, test }
  console.log(
    `FOUND ${JSON.stringify(line)}: ${again ? 'comes again, added to test/seeds.json' : `hangs on the schedule, see ${first.log}`}`,
  )
  if (again) addSeed(line)
}

async function besideLoops<Value>(count: number, work: () => Promise<Value>): Promise<Value> {
  for (let started = 0; started < count; started++)
    loopsRunning.add(spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }))
  try {
    return await work()
  } finally {
    killLoops()
  }
}

function killLoops(): void {
  for (const loop of loopsRunning) loop.kill('SIGKILL')
  loopsRunning.clear()
}
