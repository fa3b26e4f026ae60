import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { format } from 'oxfmt'
import { style } from '../oxfmt.config.ts'
import { renderBounds, renderLatency, renderMachine, renderMemory, renderScenario } from './report/report.ts'
import type { Results } from './report/results.ts'
import { scenarios } from './scenarios.ts'

// Writes the tables of docs/performance.md from a complete run: `npm run bench`, then `npm run bench:page`.

const roundsAtLeast = 5
const page = join(import.meta.dirname, '../docs/performance.md')
const source = process.argv[2] ?? join(import.meta.dirname, 'results/latest.json')

const results = JSON.parse(readFileSync(source, 'utf8')) as Results
const lacking = findLacking(results)
if (lacking.length > 0) throw new Error(`${source} is not a complete run:\n${lacking.join('\n')}`)

const text = readFileSync(page, 'utf8').replace(
  /(<!-- generated: (.+) -->\n)[^]*?(<!-- end -->)/g,
  (_block, begin: string, name: string, end: string) => `${begin}\n${render(name)}\n\n${end}`,
)
writeFileSync(page, (await format(page, text, style)).code)

function render(name: string): string {
  if (name === 'machine') return renderMachine(results)
  if (name === 'bounds') return renderBounds(results)
  if (name === 'latency') return `At ${results.latencyRate} requests a second:\n\n${renderLatency(results)}`
  if (name === 'memory') return renderMemory(results)
  if (!scenarios.some((scenario) => scenario.name === name)) throw new Error(`there is no table ${name}`)
  return renderScenario(results, name)
}

/** The required parts that this run lacks. */
function findLacking({ cpu, latency, memory, options }: Results): string[] {
  const contenders = scenarios.flatMap(({ name, subjects }) =>
    subjects
      .filter((subject) => subject.missing() === undefined)
      .map((subject) => `${name}, ${subject.name}`),
  )
  const measured = new Set(cpu.map(({ scenario, subject }) => `${scenario}, ${subject}`))
  return [
    ...contenders.filter((contender) => !measured.has(contender)),
    ...(latency.length === 0 ? ['latency'] : []),
    ...(memory.length === 0 ? ['memory'] : []),
    ...(options.rounds < roundsAtLeast ? [`${roundsAtLeast} rounds instead of ${options.rounds}`] : []),
  ]
}
