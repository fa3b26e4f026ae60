import { obtainEngine } from './debian-suite.ts'
import { engines } from './engines.ts'

// Prints the path of a program that starts an engine: `node test/engines/obtain.ts valkey-9.1`.

const [name] = process.argv.slice(2)
const engine = engines.find((each) => each.name === name)
if (engine === undefined) {
  process.stderr.write(
    `node test/engines/obtain.ts ENGINE\nEngines: ${engines.map((each) => each.name).join(', ')}\n`,
  )
  process.exit(2)
}
console.log(obtainEngine(engine))
