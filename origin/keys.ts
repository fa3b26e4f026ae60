import { randomBytes } from 'node:crypto'
import { Command, InvalidArgumentError, Option } from 'commander'
import { exitOnOutputError } from '../shared/output-error.ts'
import { showValue } from '../shared/settings/problems.ts'
import { exitOnStartError } from '../shared/start-error.ts'
import { databaseProblem } from './key-database.ts'
import { environmentTypes, openKeyStore, type EnvironmentType, type KeyStore } from './key-store.ts'
import { readProjectName } from './project-name.ts'
import { loadOriginSettings } from './settings.ts'

const program = new Command('keys')
  .description('Create, list and revoke the API keys of the origin, which are in the database ORIGIN_DB.')
  .option('--json', 'print one JSON object a line')
  .configureHelp({ showGlobalOptions: true })

program
  .command('create')
  .description('create a key for a project, and the project if it is new; the key is not shown again')
  .requiredOption('--project <name>', 'name of the project: 1 to 100 printable characters', readName)
  .addOption(
    new Option('--type <type>', 'the environment of the project')
      .choices(environmentTypes)
      .default('production' satisfies EnvironmentType),
  )
  .action(({ project, type }: { project: string; type: EnvironmentType }) => {
    const made = withKeys((keys) => keys.createKey(project, type))
    if (printsJson()) printJson(made)
    else {
      console.log(`Key:     ${made.key}\nID:      ${made.id}\nProject: ${made.project} (${made.type})\n`)
      console.log('The key is not shown again. To revoke it, use its ID.')
    }
  })

program
  .command('list')
  .description('list all keys, oldest first')
  .action(() => {
    const keys = withKeys((store) => store.listKeys())
    if (printsJson()) keys.forEach(printJson)
    else if (keys.length === 0) console.log('There are no keys yet.')
    else {
      const rows = keys.map((key) => [key.id, key.project, key.type, key.createdAt, key.revokedAt ?? 'no'])
      console.log(formatTable([['ID', 'PROJECT', 'TYPE', 'CREATED', 'REVOKED'], ...rows]))
    }
  })

program
  .command('revoke')
  .description('revoke a key; it is refused from then on')
  .argument('<id>', 'ID of the key, as create and list print it')
  .action((id: string) => {
    const revocation = withKeys((keys) => keys.revokeKey(id))
    if (!revocation) return program.error(`error: there is no key with the ID ${showValue(id)}`)
    const { key, repeated } = revocation
    if (printsJson()) printJson(key)
    else if (repeated) console.log(`Key ${key.id} had been revoked already, at ${String(key.revokedAt)}.`)
    else console.log(`Key ${key.id} is revoked.`)
  })

exitOnOutputError()
try {
  program.parse()
} catch (error) {
  exitOnStartError(error)
}

function readName(text: string): string {
  const name = readProjectName(text)
  if (name === undefined) throw new InvalidArgumentError('A name has 1 to 100 printable characters.')
  return name
}

function withKeys<Result>(work: (keys: KeyStore) => Result): Result {
  const path = loadOriginSettings(process.env).settings.originDb
  let keys: KeyStore | undefined
  try {
    keys = openKeyStore(path, { now: () => new Date(), randomBytes })
    return work(keys)
  } catch (error) {
    throw databaseProblem(path, error)
  } finally {
    keys?.close()
  }
}

function printsJson(): boolean {
  return program.opts<{ json?: true }>().json === true
}

function printJson(value: object): void {
  console.log(JSON.stringify(value))
}

/** Formats a table. Each column is as wide as its widest cell. */
function formatTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
  return lines.map((line) => line.trimEnd()).join('\n')
}
