import { z } from 'zod'
import { problemAt, problemsOf, showValue, type Place, type Problem, type Source } from './problems.ts'
import { SettingsError } from './settings-error.ts'
import { fileNames, variableName, type Setting, type SettingsOf, type SettingsTable } from './table.ts'

/**
 * Throws a `SettingsError` if there are problems. It lists the problems of the environment first, then those of the file in the order of
 * its lines.
 */
export function throwProblems(problems: readonly Problem[]): void {
  if (problems.length === 0) return
  const inOrder = problems.toSorted((a, b) => a.line - b.line).map(({ text }) => text)
  throw new SettingsError([...new Set(inOrder)])
}

/** A source and its valid values. Values with a problem are left out. */
export type Reading<Values = Record<string, unknown>> = {
  readonly source: Source
  readonly values: Readonly<Partial<Values>>
  readonly problems: readonly Problem[]
}

/** Reads a source with the schema of its top-level names. */
export function readSource<Schema extends z.ZodObject>(
  schema: Schema,
  source: Source,
): Reading<z.output<Schema>> {
  const read = schema.safeParse(source.given)
  if (read.success) return { source, values: read.data, problems: [] }
  const { issues } = read.error
  const wrong = new Set(issues.flatMap((issue) => issue.path[0] ?? ('keys' in issue ? issue.keys : [])))
  const without = (all: object): Record<string, unknown> =>
    Object.fromEntries(Object.entries(all).filter(([name]) => !wrong.has(name)))
  // The schema gives fields that are left out their defaults, which are not the values of the wrong ones.
  const values = without(schema.parse(without(source.given))) as Partial<z.output<Schema>>
  return { source, values, problems: problemsOf(issues, source) }
}

/** The values read for a settings table. */
export type ReadSettings<Table extends SettingsTable> = {
  /** Every setting without a problem, including defaults. */
  readonly values: Partial<SettingsOf<Table>>
  readonly problems: readonly Problem[]
  /** Returns where a setting was given, or else the variable that would set it. */
  readonly placeOf: (property: keyof Table & string) => Place
}

/**
 * Reads a settings table from the environment and from a file. The environment overrides the file. An empty variable counts as unset. An
 * invalid value in the file is a problem even if a variable overrides it.
 */
export function readSettings<Table extends SettingsTable>(
  table: Table,
  env: NodeJS.ProcessEnv,
  file?: Reading,
): ReadSettings<Table> {
  const environment = readEnvironment(table, env)
  const problems = [...environment.problems, ...(file?.problems ?? [])]
  const values: Record<string, unknown> = {}
  const places: Record<string, Place> = {}
  for (const [property, setting] of Object.entries(table)) {
    const variable = variableName(property)
    const [field, second] = file ? fileNames(property, setting).filter((name) => isGiven(file, name)) : []
    if (file && field !== undefined && second !== undefined) {
      problems.push(
        problemAt(file.source.placeOf([second]), `the same setting as ${field}, keep one of them`),
      )
    }
    const useFile = file && field !== undefined && !isGiven(environment, variable)
    const [reading, name] = useFile ? [file, field] : [environment, variable]
    places[property] = reading.source.placeOf([name])
    if (Object.hasOwn(reading.values, name)) values[property] = reading.values[name]
    else if (!isGiven(reading, name)) values[property] = defaultOf(setting)
  }
  return {
    values: values as Partial<SettingsOf<Table>>,
    problems,
    placeOf: (property) => places[property] ?? { label: variableName(property), line: 0 },
  }
}

function defaultOf({ kind, initial }: Setting<unknown>): unknown {
  return initial === undefined ? undefined : kind.schema.parse(initial)
}

function isGiven(reading: Reading, name: string): boolean {
  return Object.hasOwn(reading.source.given, name)
}

function readEnvironment(table: SettingsTable, env: NodeJS.ProcessEnv): Reading {
  const given: Record<string, unknown> = {}
  const fields: Record<string, z.ZodType> = {}
  const kinds = new Map(Object.entries(table).map(([property, { kind }]) => [variableName(property), kind]))
  for (const [variable, { schema, fromText }] of kinds) {
    fields[variable] = schema.optional()
    const text = env[variable]
    if (text) given[variable] = fromText ? fromText(text) : text
  }
  return readSource(z.object(fields), {
    given,
    placeOf: ([variable]) => ({ label: String(variable), line: 0 }),
    show: (variable, value) => (kinds.get(variable)?.show ?? showValue)(value),
    problemOfUnknown: ([variable]) => ({ line: 0, text: `${String(variable)}: unknown` }),
  })
}
