import { parseArgs } from 'node:util'
import { measure, type Outcome } from './measure.ts'
import { readFileLimit, startWorker } from './processes.ts'
import { missingPrograms, type ProxyName } from './proxies.ts'
import { describeOutcome, findProblems, renderTable } from './report.ts'
import { scenarios, type Scenario } from './scenarios.ts'

// Attacks, and their effect on a client at another address: `npm run test:attack`, or `npm run test:attack -- NAME…` for some of them. The
// client's 99th percentile may at most double, none of its requests may fail, and memory must stay within 512 MiB and return to its level.
// Each attack takes half a minute, or as long as `--seconds` says; `--recovery` sets how many seconds the memory has to return. With
// `--beside`, nginx is attacked in the same way, and over HTTPS also HAProxy and Node's own server. `--markdown` does the same and prints a
// table of all results.

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '20' },
    recovery: { type: 'string', default: '60' },
    beside: { type: 'boolean', default: false },
    markdown: { type: 'boolean', default: false },
  },
})
const unknown = positionals.filter((name) => !scenarios.some((scenario) => scenario.name === name))
if (unknown.length > 0)
  refuse(`no such attack: ${unknown.join(', ')}; there are ${scenarios.map(({ name }) => name).join(', ')}`)
const seconds = Number(values.seconds)
if (!(seconds >= 5)) refuse(`--seconds: needs 5 or more, got ${values.seconds}`)
// A process has at most the connections of all clients, and as many to the backend.
const filesNeeded = 12_000
if (readFileLimit() < filesNeeded)
  refuse(
    `${filesNeeded} open files are needed, ${readFileLimit()} are allowed. Try \`ulimit -n ${filesNeeded}\`.`,
  )
const chosen = scenarios.filter(({ name, onlyNamed }) =>
  positionals.length === 0 ? onlyNamed !== true : positionals.includes(name),
)
const proxiesOf = ({ listener, beside = ['nginx'] }: Scenario): readonly ProxyName[] =>
  (values.beside || values.markdown) && listener === 'clients' ? ['sluice', ...beside] : ['sluice']
const missing = missingPrograms(chosen.flatMap(proxiesOf))
if (missing.length > 0) refuse(`${missing.join(' and ')} could not be found.`)
const backend = startWorker('test/attack/backend.ts')
const { port: backendPort } = JSON.parse(await backend.nextLine()) as { port: number }
const outcomes: Outcome[] = []
const problems: string[] = []
for (const scenario of chosen) {
  for (const proxy of proxiesOf(scenario)) {
    const outcome = await measure(scenario, proxy, backendPort, {
      attack: seconds,
      recovery: Number(values.recovery),
    })
    outcomes.push(outcome)
    console.log(describeOutcome(outcome))
    if (proxy === 'sluice') problems.push(...findProblems(outcome))
  }
}
if (values.markdown) console.log(`\n${renderTable(outcomes)}\n`)
for (const problem of problems) console.log(`Failed: ${problem}`)
process.exit(problems.length === 0 ? 0 : 1)

function refuse(reason: string): never {
  console.log(`Nothing was attacked: ${reason}`)
  process.exit(1)
}
