import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadGatewaySettings, type GatewaySettings } from '../../../proxy/config/settings.ts'
import { SettingsError } from '../../../shared/settings/settings-error.ts'
import { makeTemporaryDirectory } from '../run/temporary-directory.ts'

type Environment = Record<string, string>

/** The mistakes in settings, in the order in which they are reported; empty if they are valid. */
export function problemsOf(env: Environment, cwd = makeTemporaryDirectory()): readonly string[] {
  try {
    loadGatewaySettings(env, cwd)
    return []
  } catch (error) {
    if (error instanceof SettingsError) return error.problems
    throw error
  }
}

/** Loads settings from the environment and a `sluice.yaml` of this text, which must be valid. */
export function loadWithFile(
  yaml: string,
  env: Environment = {},
): { settings: GatewaySettings; warnings: string[] } {
  return loadGatewaySettings(env, directoryWith(yaml))
}

/** A new directory with a `sluice.yaml` of this content. */
export function directoryWith(yaml: string | Buffer): string {
  const directory = makeTemporaryDirectory()
  writeFileSync(join(directory, 'sluice.yaml'), yaml)
  return directory
}
