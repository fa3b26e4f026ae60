import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { cookieValues } from '../../../proxy/request/values/cookie-values.ts'
import { valuesOf } from '../../../proxy/request/values/decoded-values.ts'
import { queryValues } from '../../../proxy/request/values/query-values.ts'
import { installDebianPackages, installNpmPackages } from '../../support/run/packages.ts'
import { seededRandom } from '../../support/random/seeded-random.ts'
import { testSeed } from '../../support/random/seed.ts'
import { readersFolder, valueReaders, type Source, type ValueReader } from './readers.ts'
import { writeText } from './texts.ts'

// Asks real libraries which value they read for a parameter, a cookie or a number, and whether a rule with such a key counts the request
// for that value: the second part of `npm run test:backends`. A value that a library reads and no rule counts bypasses the limit.

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string', default: String(testSeed()) },
    spellings: { type: 'string', default: '10000' },
    only: { type: 'string', default: '' },
  },
})
/** A limit on values that never takes effect. */
const unbounded = 1_000
const random = seededRandom(Number(options.seed))
const chosen = valueReaders.filter(({ name }) => name.toLowerCase().includes(options.only.toLowerCase()))

installNpmPackages(join(import.meta.dirname, '..'))
const missing = chosen.flatMap(({ needs }) => (needs && !isInstalled(needs.check) ? [needs.name] : []))
installDebianPackages([...new Set(missing)])

console.log(`seed ${options.seed}, ${options.spellings} spellings for each of ${chosen.length} libraries\n`)
let failed = 0
for (const reader of chosen) {
  const texts = Array.from({ length: Number(options.spellings) }, () => writeText(random, reader.source))
  const read = ask(reader, texts)
  const uncounted = texts.flatMap((text, i) =>
    (read[i] ?? []).filter((value) => !counts(reader.source, text, value)).map((value) => [text, value]),
  )
  const found = read.filter((values) => values.length > 0).length
  console.log(
    `${reader.name.padEnd(28)} ${String(found).padStart(7)} read ${String(uncounted.length).padStart(5)} uncounted`,
  )
  for (const [text, value] of uncounted.slice(0, 8))
    console.log(`  FAILED ${JSON.stringify(text)} is ${JSON.stringify(value)}`)
  if (uncounted.length > 0 || found === 0) failed++
}
process.exit(failed > 0 || chosen.length === 0 ? 1 : 0)

function isInstalled([program, ...args]: readonly [string, ...string[]]): boolean {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0
}

/** @returns for each text the values that the library reads, as one character per byte */
function ask({ program, script, reader, name }: ValueReader, texts: readonly string[]): string[][] {
  const { status, stdout, stderr } = spawnSync(program, [join(readersFolder, script)], {
    input: JSON.stringify(texts.map((text) => Buffer.from(text, 'latin1').toString('base64'))),
    env: { ...process.env, READER: reader },
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  if (status !== 0) throw new Error(`${name}: ${stderr}`)
  return (JSON.parse(stdout) as string[][]).map((values) =>
    values.map((value) => Buffer.from(value, 'base64').toString('latin1')),
  )
}

/** Whether a request with this text counts for the client that has the value. */
function counts(source: Source, text: string, value: string): boolean {
  const isNumber = source === 'number'
  const isQuoted = source === 'cookie'
  const counted =
    source === 'query'
      ? queryValues(`/x?${text}`, 'user', unbounded)
      : source === 'cookie'
        ? cookieValues(text, 'sid', unbounded)
        : valuesOf(text, { isQuoted, isNumber })
  // A value that is empty, or truncated before any letter or digit, identifies no client.
  return valuesOf(value, { isQuoted, isNumber }).every(
    (client) => !/[0-9a-z]/.test(client) || counted.includes(client),
  )
}
