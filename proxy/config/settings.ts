import { dirname, resolve } from 'node:path'
import type { z } from 'zod'
import type { Problem } from '../../shared/settings/problems.ts'
import { readSettings, readSource, throwProblems } from '../../shared/settings/settings.ts'
import { fileNames, type SettingsOf } from '../../shared/settings/table.ts'
import type { CrowdsecSettings } from '../limits/clients/crowdsec/local-api.ts'
import type { TokenSettings } from '../limits/keys/tokens/tokens.ts'
import type { Refusals } from '../limits/replies.ts'
import { usesFallback, type UpstreamRoute } from '../limits/rules/upstream-routes.ts'
import type { ListEntry, Rule } from '../policy.ts'
import type { Webhook } from '../telemetry/webhooks/webhook-event.ts'
import { boundsFor, type Bounds } from './bounds.ts'
import type { FolderOf } from './checks/certificates.ts'
import { readKeys } from './checks/key-files.ts'
import { findProblems } from './checks/problems.ts'
import { findWarnings } from './checks/warnings.ts'
import { locateCrowdsecKey } from './clients/crowdsec.ts'
import { locateGeo, type GeoFiles } from './clients/geoip.ts'
import { locateLists, locateRuleLists } from './clients/list-files.ts'
import { defaultName, readConfigFile } from './file/config-file.ts'
import { createFileSource } from './file/file-source.ts'
import { configFileSchema, type FileReading } from './file/schema.ts'
import { readYamlMapping } from './file/yaml-document.ts'
import { withPresets } from './presets.ts'
import type { cors } from './replies/cors.ts'
import { readRefusals } from './replies/refusal-files.ts'
import { readRouteAuthorities } from './routes/authorities.ts'
import { isUpstreamGiven } from './routes/is-upstream-given.ts'
import { defaultLimits } from './rules/default-limits.ts'
import { limits } from './rules/limits.ts'
import { withTimezone } from './rules/timezone.ts'
import { gatewayTable } from './settings-table.ts'
import { nameAsGiven, readPrefixedVariables } from './written/prefixed-variables.ts'
import { readSecretFiles, secretFiles } from './written/secret-files.ts'
import { findUnsupported } from './written/unsupported-settings.ts'

/** The settings of the gateway, checked. */
export type GatewaySettings = SettingsOf<typeof gatewayTable> &
  Bounds & {
    /** The limits table, in its order. */
    readonly rules: readonly Rule[]
    /** Clients that no rule applies to. */
    readonly allowList: readonly ListEntry[]
    /** Clients whose requests are refused before any rule, even if rate limiting is disabled. */
    readonly denyList: readonly ListEntry[]
    /** The source of CrowdSec's decisions; undefined if CrowdSec is not used. */
    readonly crowdsec: CrowdsecSettings | undefined
    /** The origins whose scripts can read local replies; undefined if no origin can. */
    readonly cors: z.output<typeof cors> | undefined
    /** The response to refused requests. */
    readonly refusals: Refusals
    /** How tokens are verified; undefined if no rule counts by them. */
    readonly jwt: TokenSettings | undefined
    /** The databases of countries and autonomous systems; undefined without any. */
    readonly geoip: GeoFiles | undefined
    /** Receivers of events: bans, outages of Redis, and invalid settings. */
    readonly webhooks: readonly Webhook[]
    /** Headers that every backend gets: name, value, name, value… with names in lower case. */
    readonly requestHeaders: readonly string[]
    /** Backends by host and path; undefined if everything goes to `upstreamUrl`. */
    readonly routes: readonly UpstreamRoute[] | undefined
    /** Whether `upstreamUrl` was set, rather than left at its default. */
    readonly isUpstreamGiven: boolean
    /** Whether requests that no route matches go to `upstreamUrl`. See `usesFallback`. */
    readonly hasFallback: boolean
    /** The files from which secrets were read, by the variables that name them, such as `REDIS_URL_FILE`. */
    readonly secretFiles: ReadonlyMap<string, string>
    /** The folder of relative paths in `redisUrl`. */
    readonly redisFolder: string
    /** The names in the file, by property, of the settings that a file may have. */
    readonly namesInFile: ReadonlyMap<keyof typeof gatewayTable, string>
    /** The file that defines the limits; undefined for the built-in table. */
    readonly limitsFile: string | undefined
    /** Whether the settings file exists and has a field, and not only blank lines and comments. */
    readonly hasFields: boolean
  }

const namesInFile = new Map(
  (Object.keys(gatewayTable) as (keyof typeof gatewayTable)[]).flatMap((property) => {
    const [name] = fileNames(property, gatewayTable[property])
    return name === undefined ? [] : [[property, name] as const]
  }),
)

const noRefusals: Refusals = { everyRule: undefined, ofRules: new Map() }

/**
 * Reads the gateway's settings from the environment and the settings file; the environment takes precedence.
 *
 * @param cwd the folder that is searched for `sluice.yaml`, and from which relative paths in variables start
 * @param pathsFrom the folder from which relative paths in the file start; by default the file's own folder
 * @returns the settings, with absolute file paths, and warnings to log
 * @throws SettingsError with every problem
 */
export function loadGatewaySettings(
  given: NodeJS.ProcessEnv,
  cwd: string,
  pathsFrom?: string,
): { settings: GatewaySettings; warnings: string[] } {
  const { env: unprefixed, prefixed, problems: unknown } = readPrefixedVariables(given)
  const { env, problems: unreadSecrets } = readSecretFiles(unprefixed, cwd)
  const { path, name, file, problems } = readFile(env, cwd)
  const read = readSettings(gatewayTable, env, file)
  const folder = pathsFrom ?? dirname(path ?? resolve(cwd, defaultName))
  // Only settings from the file have a line.
  const folderOf: FolderOf = (property) => (read.placeOf(property).line > 0 ? folder : cwd)
  const { refusals, routes, jwt, keySet, problems: unread } = readNamedFiles(file, folder)
  const mistakes = [
    ...unknown,
    ...unreadSecrets,
    ...findUnsupported(env),
    ...problems,
    ...unread,
    ...read.problems,
    ...findProblems(read, file, folder, folderOf),
  ]
  throwProblems(mistakes.map(({ line, text }) => ({ line, text: nameAsGiven(text, prefixed) })))
  const values = read.values as SettingsOf<typeof gatewayTable>
  const written = file?.values.limits
  const rules = written && withTimezone(written, values.timezone)
  const isGiven = isUpstreamGiven(env, file?.source)
  const settings = {
    ...values,
    ...boundsFor(values),
    configFile: path,
    ...absolutePaths(values, folderOf),
    redisFolder: folderOf('redisUrl'),
    rules: rules ? locateRuleLists(rules, folder) : limits.parse(defaultLimits),
    namesInFile,
    limitsFile: rules && path,
    hasFields: file !== undefined && Object.keys(file.source.given).length > 0,
    ...settingsOfFile(file?.values, folder),
    refusals,
    secretFiles: secretFiles(unprefixed, cwd),
    routes,
    isUpstreamGiven: isGiven,
    hasFallback: usesFallback(isGiven, routes),
    jwt,
  }
  const active = { rules: settings.rules, keySet }
  const loaded = { env, cwd, path, name, file, read, values, written: rules, ...active }
  const warnings = findWarnings(loaded)
  return { settings, warnings: warnings.map((text) => nameAsGiven(text, prefixed)) }
}

/** Reads the files that the settings file names: bodies of refusals, CA certificates of routes, keys of tokens. */
function readNamedFiles(file: FileReading | undefined, folder: string) {
  if (!file)
    return { refusals: noRefusals, routes: undefined, jwt: undefined, keySet: undefined, problems: [] }
  const { values, source } = file
  const { refusals, problems: ofRefusals } = readRefusals(values, source.placeOf, folder)
  const { routes, problems: ofRoutes } = readRouteAuthorities(values.routes, source.placeOf, folder)
  const { jwt, keySet, problems: ofKeys } = readKeys(values.jwt, source.placeOf, folder)
  return { refusals, routes, jwt, keySet, problems: [...ofRefusals, ...ofRoutes, ...ofKeys] }
}

/** Returns the settings that only the file can have, with the paths of files that are read while the gateway runs. */
function settingsOfFile(values: FileReading['values'] | undefined, folder: string) {
  return {
    allowList: locateLists(values?.allowList ?? [], folder),
    denyList: locateLists(values?.denyList ?? [], folder),
    crowdsec: locateCrowdsecKey(values?.crowdsec, folder),
    geoip: locateGeo(values?.geoip, folder),
    cors: values?.cors,
    requestHeaders: values?.requestHeaders ?? [],
    webhooks: values?.webhooks ?? [],
  }
}

type PathProperty = 'tlsCertFile' | 'tlsKeyFile' | 'upstreamCaFile'

/** Returns the settings that are file paths as absolute paths. */
function absolutePaths(values: SettingsOf<typeof gatewayTable>, folderOf: FolderOf) {
  const absolute = (property: PathProperty) => {
    const path = values[property]
    return path && resolve(folderOf(property), path)
  }
  return {
    tlsCertFile: absolute('tlsCertFile'),
    tlsKeyFile: absolute('tlsKeyFile'),
    upstreamCaFile: absolute('upstreamCaFile'),
  }
}

function readFile(
  env: NodeJS.ProcessEnv,
  cwd: string,
): {
  path: string | undefined
  /** The path as it was given, for messages. */
  name: string
  file: FileReading | undefined
  problems: readonly Problem[]
} {
  const opened = readConfigFile(env['CONFIG_FILE'] || undefined, cwd)
  const none = { path: undefined, name: '', file: undefined }
  if (!opened) return { ...none, problems: [] }
  if ('problem' in opened) return { ...none, problems: [opened.problem] }
  const { path, name, text } = opened
  const mapping = withPresets(readYamlMapping(text, env))
  const mistakes = mapping.mistakes.map(({ line, text }) => ({ line, text: `${name}:${line}: ${text}` }))
  if (mistakes.length > 0) return { path, name, file: undefined, problems: mistakes }
  return { path, name, file: readSource(configFileSchema, createFileSource(name, mapping)), problems: [] }
}
