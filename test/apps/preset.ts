import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

/** Path of a `sluice.yaml` with the rules of a preset, as `sluice presets` gives them, without their sources, and with others. */
export function presetConfig(name: string, others: readonly object[] = []): string {
  const { limits } = parse(readFileSync(`presets/${name}.yaml`, 'utf8')) as { limits: { source?: string }[] }
  const rules = limits.map((rule) => ({ ...rule, source: undefined }))
  return writeConfigFile(JSON.stringify({ limits: [...rules, ...others] }))
}
