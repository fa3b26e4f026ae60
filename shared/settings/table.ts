import type { z } from 'zod'

/** One kind of value in a variable or in a file: how to read it and how messages describe it. */
export type Kind<Value> = {
  /** The correct form, which follows "needs" in a message: `a whole number from 0 to 65535`. */
  readonly needs: string
  /** Reads a value as written in a file. Its issues say `needs …`. */
  readonly schema: z.ZodType<Value>
  /** Converts a variable's text to the form of a file; without it, both have the same form. */
  readonly fromText?: (text: string) => unknown
  /** Shows a value that may hold a secret; without it, values are shown as given. */
  readonly show?: (value: unknown) => string
}

/** One line of a settings table. */
export type Setting<Value> = {
  readonly kind: Kind<Value>
  /** The default as a person would write it in a file; `undefined` without a default. */
  readonly initial: Written | undefined
  /** The effect of the setting, for the reference and for editors. */
  readonly meaning: string
  readonly environmentOnly: boolean
  /** A second name in the file. */
  readonly shortName: string | undefined
}

type Written = string | number | boolean | readonly string[]

/** Settings by the property that holds them. A property's name ends in its unit, which people do not write. */
export type SettingsTable = Readonly<Record<string, Setting<unknown>>>

export type SettingsOf<Table extends SettingsTable> = {
  -readonly [Property in keyof Table]: Table[Property] extends Setting<infer Value> ? Value : never
}

type Options = { environmentOnly?: boolean; shortName?: string }

/** Makes a line of a settings table. Without a default, the setting may be `undefined`. */
export function setting<Value>(
  kind: Kind<Value>,
  initial: undefined,
  meaning: string,
  options?: Options,
): Setting<Value | undefined>
export function setting<Value>(
  kind: Kind<Value>,
  initial: Written,
  meaning: string,
  options?: Options,
): Setting<Value>
export function setting<Value>(
  kind: Kind<Value>,
  initial: Written | undefined,
  meaning: string,
  { environmentOnly = false, shortName }: Options = {},
): Setting<Value> {
  return { kind, initial, meaning, environmentOnly, shortName }
}

/** The name in a file: the property's without its unit, as in `storeTimeout` for `storeTimeoutMs`. */
export function fileName(property: string): string {
  return property.replace(/Ms$/, '').replace(/Bytes$/, 'Size')
}

/** The name in the environment: `STORE_TIMEOUT` for `storeTimeoutMs`. */
export function variableName(property: string): string {
  return fileName(property)
    .replace(/[A-Z]/g, (letter) => `_${letter}`)
    .toUpperCase()
}

/** The names in a file, the short one first; empty for a setting that only the environment can set. */
export function fileNames(property: string, { environmentOnly, shortName }: Setting<unknown>): string[] {
  if (environmentOnly) return []
  return shortName === undefined ? [fileName(property)] : [shortName, fileName(property)]
}

/** The fields of a file that holds these settings. Each is optional and has the description that editors show. */
export function fileFields(table: SettingsTable): Record<string, z.ZodType> {
  const fields: Record<string, z.ZodType> = {}
  for (const [property, setting] of Object.entries(table)) {
    const { kind, initial, meaning } = setting
    const field = initial === undefined ? kind.schema.optional() : kind.schema.prefault(initial)
    const description = nameFields(meaning, table)
    for (const name of fileNames(property, setting)) fields[name] = field.meta({ description })
  }
  return fields
}

/** Replaces the variables that a description mentions by their fields, where they have one. */
function nameFields(description: string, table: SettingsTable): string {
  return description.replace(/`([A-Z][A-Z_]+)`/g, (written, variable) => {
    const named = Object.entries(table).find(([property]) => variableName(property) === variable)
    const [field] = named ? fileNames(...named) : []
    return field === undefined ? written : `\`${field}\``
  })
}
