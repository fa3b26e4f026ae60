import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { installNpmPackages } from '../test/support/run/packages.ts'
import { readOptions, usage } from './options.ts'
import { renderReport } from './report/report.ts'
import { runBenchmark } from './run.ts'

const args = process.argv.slice(2)
if (args.includes('--help')) {
  process.stdout.write(usage)
  process.exit()
}
const options = readOptions(args)
installNpmPackages(import.meta.dirname)
const results = await runBenchmark(options, (line) => process.stderr.write(`${line}\n`))
mkdirSync(dirname(options.output), { recursive: true })
writeFileSync(options.output, `${JSON.stringify(results, null, 2)}\n`)
process.stdout.write(`\n${renderReport(results)}\n${options.output}\n`)
