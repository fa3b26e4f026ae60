import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { dirname, join } from 'node:path'
import { parse } from 'yaml'
import { z } from 'zod'
import { nearestWord } from '../../shared/settings/did-you-mean.ts'
import { writtenName } from './rules/limits.ts'
import type { YamlMapping } from './file/yaml-document.ts'

/** The presets that come with the gateway, each a file in `presets/`. */
export const presetNames = [
  'account-shield',
  'django-admin',
  'docker-registry',
  'formbricks',
  'grafana',
  'llm-gateway',
  'login-protection',
  'mediawiki',
  'public-api',
  'wordpress',
] as const

export type PresetName = (typeof presetNames)[number]

/** A rule of a preset, as in a settings file, and the source of its figure. */
export type PresetRule = Readonly<Record<string, unknown>> & {
  readonly name: string
  readonly source: string
}

export type Preset = {
  readonly name: PresetName
  readonly description: string
  readonly rules: readonly PresetRule[]
  /** The file, comments included. */
  readonly text: string
}

/** Reads a preset from its file. */
export function readPreset(name: PresetName): Preset {
  const packageFile = findPackageJSON(import.meta.url)
  if (!packageFile) throw new Error('package.json is missing')
  const text = readFileSync(join(dirname(packageFile), 'presets', `${name}.yaml`), 'utf8')
  const { description, limits } = parse(text) as { description: string; limits: PresetRule[] }
  return { name, description, rules: limits, text }
}

/** Returns the message about an unknown preset. */
export function unknownPreset(name: string): string {
  const near = nearestWord(name, presetNames)
  return near === undefined
    ? `needs one of ${presetNames.join(', ')}`
    : `needs a preset, did you mean ${near}?`
}

const needsOne = `needs one of ${presetNames.join(', ')}`
const presetName = z
  .string(needsOne)
  .refine((name) => presetNames.some((each) => each === name), {
    error: ({ input }) => unknownPreset(String(input)),
  })
  .meta({ enum: [...presetNames] })

/** The field `preset`. */
export const preset = z.union([
  presetName,
  z
    .array(presetName)
    .min(1, 'needs at least one entry')
    .refine((names) => new Set(names).size === names.length, 'needs each preset only once'),
])

/**
 * Returns the rules that a file's presets add, as written and without `source`. A rule of the file replaces a preset's rule of the same
 * name. An unknown preset adds nothing; the schema reports it.
 */
export function rulesOfPresets({ preset, limits }: Readonly<Record<string, unknown>>): object[] {
  const written: readonly unknown[] = Array.isArray(preset) ? preset : [preset]
  const own = new Set(Array.isArray(limits) ? limits.map(writtenName) : [])
  return presetNames
    .filter((name) => written.includes(name))
    .toSorted((a, b) => written.indexOf(a) - written.indexOf(b))
    .flatMap((name) => readPreset(name).rules)
    .filter(({ name }) => !own.has(name))
    .map((rule) => Object.fromEntries(Object.entries(rule).filter(([field]) => field !== 'source')))
}

/** Appends the rules of its presets to a settings file. Messages about them carry the line of `preset`. */
export function withPresets(mapping: YamlMapping): YamlMapping {
  const { value, lineOf, lineOfName } = mapping
  const own: unknown = value['limits'] ?? []
  const added = value['preset'] === undefined || !Array.isArray(own) ? [] : rulesOfPresets(value)
  if (!Array.isArray(own) || added.length === 0) return mapping
  const placed = (path: readonly PropertyKey[]): readonly PropertyKey[] =>
    path[0] === 'limits' && Number(path[1] ?? 0) >= own.length ? ['preset'] : path
  return {
    ...mapping,
    value: { ...value, limits: [...(own as unknown[]), ...added] },
    lineOf: (path) => lineOf(placed(path)),
    lineOfName: (path) => lineOfName(placed(path)),
  }
}
