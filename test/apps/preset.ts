import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

/**
 * The path of a `sluice.yaml` with the rules of a preset, as `sluice presets` prints them but without their sources, and with other rules.
 */
export function presetConfig(name: string, others: readonly object[] = []): string {
  const { limits } = parse(readFileSync(`presets/${name}.yaml`, 'utf8')) as { limits: { source?: string }[] }
  const rules = limits.map((rule) => ({ ...rule, source: undefined }))
  return writeConfigFile(JSON.stringify({ limits: [...rules, ...others] }))
}
