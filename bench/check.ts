import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readOptions } from './options.ts'
import { medianRatio, samplesOf, type Results } from './report/results.ts'
import { runBenchmark } from './run.ts'
import { bare } from './subjects/node-stacks.ts'
import { sluice } from './subjects/sluice.ts'

// Checks whether the gateway has become more expensive. Compares its CPU per request with the recorded figure, both as ratios to a bare
// `node:http` server in the same run: a ratio can be kept in a file, while microseconds hold for one machine only.

const file = join(import.meta.dirname, 'ratio.json')
const scenarioOf = { pass: 'pass', refused: 'refused' } as const
const tolerance = 1.1

const args = process.argv.slice(2)
const update = args.includes('--update')
const options = readOptions([
  '--scenario=pass,refused',
  `--subjects=${sluice.name},${bare.name}`,
  '--rounds=7',
  ...args.filter((arg) => arg !== '--update'),
])
const results = await runBenchmark(options, (line) => process.stderr.write(`${line}\n`))
const measured = { pass: ratioTo(results, scenarioOf.pass), refused: ratioTo(results, scenarioOf.refused) }

if (update) {
  writeFileSync(file, `${JSON.stringify(measured, null, 2)}\n`)
  process.stdout.write(`${file} is now ${JSON.stringify(measured)}\n`)
} else {
  const stored = JSON.parse(readFileSync(file, 'utf8')) as typeof measured
  for (const scenario of Object.values(scenarioOf)) {
    const change = measured[scenario] / stored[scenario]
    const verdict = change > tolerance ? 'too much' : 'well'
    process.stdout.write(
      `${scenario}: ${measured[scenario]} times the bare server, ${stored[scenario]} stored: ${verdict}\n`,
    )
    if (change > tolerance) process.exitCode = 1
  }
}

function ratioTo({ cpu }: Results, scenario: string): number {
  const ratio = medianRatio(
    samplesOf(cpu, scenario, sluice.name),
    samplesOf(cpu, scenario, bare.name),
    ({ cpuUs }) => cpuUs,
  )
  return Math.round(ratio * 100) / 100
}
