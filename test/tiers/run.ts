import { existsSync, rmSync } from 'node:fs'
import { stepsOfEngines } from '../engines/steps.ts'
import { changedFiles } from './changed-files.ts'
import { lastPage, type Result } from './last-page.ts'
import { lookAgain } from './second-look.ts'
import { readSeeds } from './seeds.ts'
import { inGroups, runStep } from './step.ts'
import { IMAGES_SCRIPT, stepsOfAll, stepsOfChange } from './steps.ts'
import { wallClockMs } from '../support/calendar/wall-clock.ts'

// Runs all steps of a tier, even if some fail, and reports the failures at the end: `node test/tiers/run.ts change`, `… all` or
// `… engines`. Further arguments select the steps whose names contain one of them. The output of the steps is kept in `RESULTS`.

const RESULTS = 'test-results'

const [tier, ...only] = process.argv.slice(2)
const steps =
  tier === 'all'
    ? stepsOfAll(readSeeds(), Math.floor(wallClockMs() / 1000) % 2 ** 31)
    : tier === 'change'
      ? stepsOfChange(readSeeds())
      : tier === 'engines'
        ? stepsOfEngines()
        : []
const chosen = steps.filter(({ name }) => only.length === 0 || only.some((part) => name.includes(part)))
if (chosen.length === 0) {
  process.stderr.write(
    `node test/tiers/run.ts change|all|engines [STEP…]\nSteps: ${steps.map(({ name }) => name).join(', ')}\n`,
  )
  process.exit(2)
}

// No registry has the helper image of testcontainers there.
if (existsSync(IMAGES_SCRIPT)) process.env['TESTCONTAINERS_RYUK_DISABLED'] ??= 'true'
rmSync(RESULTS, { recursive: true, force: true })
const changed = changedFiles()
const beganAtMs = performance.now()
const results: Result[] = []
for (const group of inGroups(chosen)) {
  console.log(`\n== ${group.map(({ name }) => name).join(', ')}`)
  const outcomes = await Promise.all(group.map((step) => runStep(step, RESULTS, group.length === 1)))
  for (const outcome of outcomes) {
    const isTests = outcome.step.tests !== undefined && !outcome.ok
    results.push({ ...outcome, ...(isTests && { secondLook: await lookAgain(outcome, changed, RESULTS) }) })
    const { step, ok, seconds } = outcome
    console.log(`== ${step.name}: ${ok ? 'passed' : 'FAILED'} after ${Math.round(seconds)} s`)
  }
}
const { text, ok } = lastPage(results, (performance.now() - beganAtMs) / 1000)
console.log(text)
process.exitCode = ok ? 0 : 1
