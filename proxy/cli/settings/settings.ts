import { loadGatewaySettings, type GatewaySettings } from '../../config/settings.ts'
import { printError } from '../output.ts'

/** The option for the settings file of a verb. */
export type ConfigOption = { readonly config?: string }

/** Returns the environment for a gateway with this settings file. */
export function environmentWith({ config }: ConfigOption): NodeJS.ProcessEnv {
  return config === undefined
    ? process.env
    : { ...process.env, CONFIG_FILE: config, SLUICE_CONFIG_FILE: undefined }
}

/**
 * Loads the settings with which a gateway would start here, in the same way. Prints their warnings.
 *
 * @throws SettingsError with every problem
 */
export function loadSettings(options: ConfigOption): GatewaySettings {
  const { settings, warnings } = loadGatewaySettings(environmentWith(options), process.cwd())
  for (const warning of warnings) printError(`warning: ${warning}`)
  if (settings.crowdsec) printError('warning: crowdsec: its decisions are not known here')
  return settings
}

/** Describes the source of the limits for people. */
export function nameLimits({ limitsFile, rateLimitingDisabled }: GatewaySettings): string {
  if (rateLimitingDisabled) return 'no limits, as RATE_LIMITING_DISABLED is 1'
  return limitsFile ?? 'the built-in table'
}
