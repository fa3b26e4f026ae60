import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { installDebianPackages, installNpmPackages } from '../support/run/packages.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { testSeed } from '../support/random/seed.ts'
import { backends, type Backend, type DebianPackage } from './backends.ts'
import { shrink } from './shrink.ts'
import { describe } from './spelling.ts'
import { findUnserved, openStage } from './stage.ts'
import { heading, legend, outcomeRow } from './table.ts'
import { tryBackend, type Outcome } from './trial.ts'

// Asks real frameworks which spellings of a limited path they serve, and checks that the gateway counts them: `npm run test:backends`. Each
// spelling is sent to the framework directly and through a gateway. If it reaches a handler through the gateway without being counted, it
// bypasses the limit.

const usage = `npm run test:backends -- [options]

  --seed N         for other spellings (${testSeed()}, or TEST_SEED)
  --spellings N    for each backend (10000)
  --only TEXT      backends whose names contain it; may be repeated
`
/** Maximum number of bypassing spellings that are shrunk and printed. */
const maxShrunk = 12

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(testSeed()) },
    spellings: { type: 'string', default: '10000' },
    only: { type: 'string', multiple: true, default: [''] },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(usage)
  process.exit()
}
const seed = Number(values.seed)
const spellings = Number(values.spellings)
if (!Number.isInteger(seed) || !Number.isInteger(spellings) || spellings < 1) {
  process.stderr.write(`--seed and --spellings need whole numbers\n\n${usage}`)
  process.exit(2)
}
const chosen = backends.filter(({ name }) =>
  values.only.some((text) => name.toLowerCase().includes(text.toLowerCase())),
)

installNpmPackages(import.meta.dirname)
const needed = new Map(chosen.flatMap(({ needs }) => needs.map((one) => [one.name, one] as const)))
installDebianPackages([...needed.values()].filter((one) => !isInstalled(one)).map(({ name }) => name))

const folder = mkdtempSync(join(tmpdir(), 'sluice-backends-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

console.log(`seed ${seed}, ${spellings} spellings for each of ${chosen.length} backends\n\n${heading}`)
let failed = 0
for (const backend of chosen) {
  const problems = await tryOut(backend).catch((error: unknown) => [String(error)])
  for (const problem of problems) console.log(`  FAILED ${backend.name}: ${problem}`)
  if (problems.length > 0) failed++
}
console.log(`\n${legend}\nseed ${seed}\n${chosen.length - failed} passed, ${failed} failed`)
process.exit(failed > 0 || chosen.length === 0 ? 1 : 0)

/** @returns the failures */
async function tryOut(backend: Backend): Promise<string[]> {
  const missing = backend.needs.filter((one) => !isInstalled(one)).map(({ name }) => name)
  if (missing.length > 0)
    return [
      `not tried: Debian's ${missing.join(' and ')} is not installed, and only root on Debian can install it`,
    ]
  const stage = await openStage(backend, folder)
  try {
    const unserved = await findUnserved(stage)
    if (unserved.length > 0) return [`does not serve ${unserved.join(', ')}\n${stage.output()}`]
    const outcome = await tryBackend(stage, seededRandom(seed), spellings)
    console.log(outcomeRow(backend.name, outcome))
    const problems = await problemsIn(outcome, stage.gatewayPort)
    const lost = await findUnserved(stage)
    return lost.length === 0
      ? problems
      : [...problems, `serves no more: ${lost.join(', ')}\n${stage.output()}`]
  } finally {
    await stage.stop()
  }
}

async function problemsIn(
  { uncounted, unanswered, altered }: Outcome,
  gatewayPort: number,
): Promise<string[]> {
  const problems = unanswered > 0 ? [`the gateway gave no answer to ${unanswered} spellings`] : []
  for (const spelling of altered.slice(0, maxShrunk))
    problems.push(`not forwarded as sent: ${describe(spelling)}`)
  const plain = new Set<string>()
  for (const spelling of uncounted.slice(0, maxShrunk))
    plain.add(describe(await shrink(gatewayPort, spelling)))
  for (const text of plain) problems.push(`uncounted: ${text}`)
  return problems
}

function isInstalled({ check: [program, ...args] }: DebianPackage): boolean {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0
}
