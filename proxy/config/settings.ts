import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { problemAt, showValue, type Place, type Problem } from '../../shared/settings/problems.ts'
import { readSettings, readSource, throwProblems, type Reading } from '../../shared/settings/settings.ts'
import { fileFields, type SettingsOf } from '../../shared/settings/table.ts'
import type { Refusals } from '../limits/replies.ts'
import { meantNetwork, sortTrustedProxies } from '../request/addresses/trusted-proxies.ts'
import type { ListEntry, Rule } from '../policy.ts'
import type { GeoFiles } from '../policy/geo-files.ts'
import { defaultName, findNearNames, readConfigFile } from './file/config-file.ts'
import { defaultLimits } from './rules/default-limits.ts'
import { findDeniedAllowances, findIdleOverrides, warnOfEverybody } from './checks/client-lists.ts'
import { warnOfCosts } from './checks/costly-rules.ts'
import type { FolderOf } from './checks/certificates.ts'
import { findWithoutSecret, warnOfIdleSecret } from './checks/devices.ts'
import { findUndecidable, warnOfBodyKeys } from './checks/decisions.ts'
import { findUnroutable, warnOfIdleRoutes, warnOfShortDelays } from './checks/over.ts'
import {
  warnOfIdleLeases,
  warnOfIdleRules,
  warnOfIdleSettings,
  warnOfIdleTimezone,
  warnOfIdleTokens,
} from './checks/idle-settings.ts'
import { warnOfLowPlans } from './checks/plans.ts'
import { clientList } from './clients/client-list.ts'
import { findUnusableGeo, findWithoutGeo, geoip, locateGeo, warnOfIdleGeo } from './clients/geoip.ts'
import { checkCrowdsecKey, crowdsec, locateCrowdsecKey } from './clients/crowdsec.ts'
import { findMissingLists, locateLists, locateRuleLists } from './clients/list-files.ts'
import type { CrowdsecSettings } from '../limits/clients/crowdsec/keep-decisions.ts'
import type { TokenSettings } from '../limits/keys/tokens/tokens.ts'
import type { Webhook } from '../telemetry/webhooks/webhook-event.ts'
import { tokenSettings } from './clients/token-settings.ts'
import { locateKeys, checkKeyFiles } from './checks/key-files.ts'
import { createFileSource } from './file/file-source.ts'
import { limits } from './rules/limits.ts'
import { withTimezone } from './rules/timezone.ts'
import { cors } from './replies/cors.ts'
import { readRouteAuthorities } from './routes/authorities.ts'
import { isUpstreamGiven } from './routes/is-upstream-given.ts'
import { requestHeaders } from './routes/request-headers.ts'
import { routes } from './routes/routes.ts'
import type { UpstreamRoute } from '../limits/rules/upstream-routes.ts'
import { readRefusals } from './replies/refusal-files.ts'
import { refusal } from './replies/refusal.ts'
import { preset, withPresets } from './presets.ts'
import { nameAsGiven, readPrefixedVariables } from './written/prefixed-variables.ts'
import { readSecretFiles, secretFiles } from './written/secret-files.ts'
import { findUnsupported } from './written/unsupported-settings.ts'
import { findOwnAddresses } from './checks/own-address.ts'
import { checkJointly } from './checks/joint.ts'
import { hasPassword } from './setting-kinds.ts'
import { boundsFor, type Bounds } from './bounds.ts'
import { gatewayTable } from './settings-table.ts'
import {
  findAddressKeys,
  findRepeatedNames,
  findUnverifiable,
  warnOfChosenKeys,
  type PlaceOfRule,
} from './checks/table.ts'
import { findUnsigned } from './webhooks/unsigned.ts'
import { webhooks } from './webhooks/webhooks.ts'
import { readYamlMapping } from './file/yaml-document.ts'

/** All settings of the gateway, checked. */
export type GatewaySettings = SettingsOf<typeof gatewayTable> &
  Bounds & {
    /** The limits table, in its order. */
    readonly rules: readonly Rule[]
    /** Clients that no rule applies to. */
    readonly allowList: readonly ListEntry[]
    /** Clients whose requests are refused before any rule, also with rate limiting off. */
    readonly denyList: readonly ListEntry[]
    /** Where decisions of CrowdSec are from; undefined without them. */
    readonly crowdsec: CrowdsecSettings | undefined
    /** Whose scripts can read local replies; undefined for nobody's. */
    readonly cors: z.output<typeof cors> | undefined
    /** The response to refused requests. */
    readonly refusals: Refusals
    /** How tokens are verified; undefined where no rule counts by them. */
    readonly jwt: TokenSettings | undefined
    /** The databases of countries and autonomous systems; undefined without any. */
    readonly geoip: GeoFiles | undefined
    /** Receivers of events: bans, outages of Redis, and invalid settings. */
    readonly webhooks: readonly Webhook[]
    /** Headers that every backend gets: name, value, name, value… with names in lower case. */
    readonly requestHeaders: readonly string[]
    /** Backends by host and path; undefined where everything goes to `upstreamUrl`. */
    readonly routes: readonly UpstreamRoute[] | undefined
    /** `upstreamUrl` was given: requests that no route matches go there. */
    readonly hasFallback: boolean
    /** The files that secrets are from, by the variables that name them, such as `REDIS_URL_FILE`. */
    readonly secretFiles: ReadonlyMap<string, string>
    /** What relative paths in `redisUrl` are from. */
    readonly redisFolder: string
    /** The file that the limits are from; undefined for the built-in table. */
    readonly limitsFile: string | undefined
  }

/** `sluice.yaml`, as written: the fields of the settings table and the limits. */
export const configFileSchema = z
  .strictObject({
    ...fileFields(gatewayTable),
    allowList: clientList
      .optional()
      .meta({ description: 'Clients that no rule counts or refuses, by address or secret header.' }),
    denyList: clientList
      .optional()
      .meta({ description: 'Clients whose requests are answered 403 before any rule applies.' }),
    crowdsec: crowdsec
      .optional()
      .meta({ description: 'CrowdSec whose decisions deny clients: its local API.' }),
    cors: cors
      .optional()
      .meta({ description: 'Lets scripts of other origins read responses of the gateway itself.' }),
    refusal: refusal
      .optional()
      .meta({ description: 'Response to requests that a rule refuses, unless the rule has one of its own.' }),
    jwt: tokenSettings
      .optional()
      .meta({ description: 'How to verify the tokens that rules count by (key: jwt:CLAIM).' }),
    geoip: geoip.optional().meta({
      description: 'Databases in MMDB format with the countries and the autonomous systems of addresses.',
    }),
    webhooks: webhooks.optional().meta({
      description: 'Receivers of events: bans, outages of Redis, settings that are wrong.',
    }),
    preset: preset.optional().meta({
      description:
        'Limits that come with the gateway, by name, or several of them. Rules in limits come first, and replace those of the same name.',
    }),
    requestHeaders: requestHeaders
      .optional()
      .meta({ description: 'Headers that every backend gets. A client cannot send them.' }),
    routes: routes.optional(),
    limits: limits.optional(),
  })
  .meta({ title: 'sluice.yaml', description: 'Settings and limits of the Sluice gateway.' })

const noRefusals: Refusals = { everyRule: undefined, ofRules: new Map() }

type FileReading = Reading<z.output<typeof configFileSchema>>

/**
 * Reads the gateway's settings from the environment and the settings file; the environment takes precedence.
 *
 * @param cwd where `sluice.yaml` is looked for, and which relative paths in variables are from
 * @param pathsFrom which relative paths in the file are from, by default its own folder
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
  // Settings from the file have a line there.
  const folderOf: FolderOf = (property) => (read.placeOf(property).line > 0 ? folder : cwd)
  const { refusals, problems: unread } = file
    ? readRefusals(file.values, file.source.placeOf, folder)
    : { refusals: noRefusals, problems: [] }
  const routes = file
    ? readRouteAuthorities(file.values.routes, file.source.placeOf, folder)
    : { routes: undefined, problems: [] }
  const mistakes = [
    ...unknown,
    ...unreadSecrets,
    ...findUnsupported(env),
    ...problems,
    ...unread,
    ...routes.problems,
    ...read.problems,
    ...checkFile(file),
    ...(file ? findDeniedAllowances(file.values, file.source.placeOf) : []),
    ...(file ? findIdleOverrides(file.values, file.source.placeOf) : []),
    ...(file ? findAddressKeys(file.values.limits, read.values.clientAddressHeader, placeOfRule(file)) : []),
    ...(file ? findUnverifiable(file.values.limits, 'jwt' in file.source.given, placeOfRule(file)) : []),
    ...(file ? findUndecidable(file.values.limits, read.values.decisionsPort, placeOfRule(file)) : []),
    ...(file
      ? findMissingLists({ ...file.values, rules: file.values.limits }, file.source.placeOf, folder)
      : []),
    ...(file ? findWithoutSecret(file.values.limits, read.values, placeOfRule(file)) : []),
    ...(file
      ? findUnroutable(
          file.values.limits,
          file.source.given['routes'],
          file.values.routes,
          read.values.decisionsPort !== undefined,
          placeOfRule(file),
        )
      : []),
    ...(file ? findUnusableGeo(file.values.geoip, file.source.placeOf, folder) : []),
    ...(file && ('geoip' in file.values || !('geoip' in file.source.given))
      ? findWithoutGeo(file.values.limits, file.values.geoip, placeOfRule(file))
      : []),
    ...(file ? checkCrowdsecKey(file.values.crowdsec, file.source.placeOf, folder) : []),
    ...(file ? checkKeyFiles(file.values.jwt, file.source.placeOf, folder) : []),
    ...checkJointly(read, folderOf),
    ...(file ? findOwnAddresses(file.values.routes, read, file.source.placeOf) : []),
    ...(file
      ? findUnsigned(file.values.webhooks, read.values, 'webhookSecret' in read.values, file.source.placeOf)
      : []),
  ]
  throwProblems(mistakes.map(({ line, text }) => ({ line, text: nameAsGiven(text, prefixed) })))
  const values = read.values as SettingsOf<typeof gatewayTable>
  const written = file?.values.limits
  const rules = written && withTimezone(written, values.timezone)
  const settings = {
    ...values,
    ...boundsFor(values),
    configFile: path,
    ...absolutePaths(values, folderOf),
    redisFolder: folderOf('redisUrl'),
    rules: rules ? locateRuleLists(rules, folder) : limits.parse(defaultLimits),
    limitsFile: rules && path,
    allowList: locateLists(file?.values.allowList ?? [], folder),
    denyList: locateLists(file?.values.denyList ?? [], folder),
    crowdsec: locateCrowdsecKey(file?.values.crowdsec, folder),
    cors: file?.values.cors,
    requestHeaders: file?.values.requestHeaders ?? [],
    webhooks: file?.values.webhooks ?? [],
    refusals,
    secretFiles: secretFiles(unprefixed, cwd),
    routes: routes.routes,
    // Routes that only over leads to are no reason to send nothing to the default backend.
    hasFallback: isUpstreamGiven(env, file?.source) || isEachOnlyOver(routes.routes),
    geoip: locateGeo(file?.values.geoip, folder),
    jwt: locateKeys(file?.values.jwt, folder),
  }
  const warnings = [
    ...(path === undefined ? warnOfNearNames(cwd) : []),
    ...warnOfDisabling(env['RATE_LIMITING_DISABLED']),
    ...warnOfTrust(values, read.placeOf('trustedProxies')),
    ...(rules || !file || settings.rateLimitingDisabled ? [] : [warnOfBuiltInTable(name, file)]),
    ...(file ? warnOfEverybody(file.values, file.source.placeOf) : []),
    ...(rules ? warnOfChosenKeys(rules, placeOfRule(file)) : []),
    ...(rules ? warnOfCosts(rules, placeOfRule(file)) : []),
    ...(rules ? warnOfBodyKeys(rules, values.decisionsPort, placeOfRule(file)) : []),
    ...(file
      ? warnOfIdleRoutes(file.values.routes, rules ?? [], (at) =>
          file.source.placeOf(['routes', at, 'onlyOver']),
        )
      : []),
    ...(rules ? warnOfShortDelays(rules, placeOfRule(file)) : []),
    ...(rules ? warnOfLowPlans(rules, placeOfRule(file)) : []),
    ...(rules ? warnOfIdleLeases(rules, values.redisUrl, placeOfRule(file)) : []),
    ...(rules ? warnOfIdleRules(rules, placeOfRule(file)) : []),
    ...(rules && file.values.jwt ? warnOfIdleTokens(rules, file.source.placeOf(['jwt'])) : []),
    ...warnOfIdleSecret(settings.rules, values, read.placeOf('deviceSecret')),
    ...(file?.values.geoip ? warnOfIdleGeo(settings.rules, file.values.geoip, file.source.placeOf) : []),
    ...warnOfIdleSettings(read),
    ...warnOfIdleTimezone(settings.rules, read),
  ]
  return { settings, warnings: warnings.map((text) => nameAsGiven(text, prefixed)) }
}

function isEachOnlyOver(given: readonly UpstreamRoute[] | undefined): boolean {
  return given !== undefined && given.length > 0 && given.every(({ onlyOver }) => onlyOver)
}

type PathProperty = 'tlsCertFile' | 'tlsKeyFile' | 'upstreamCaFile'

/** The settings that are file paths, made absolute. */
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

function checkFile(file: FileReading | undefined): Problem[] {
  if (!file) return []
  const { given, placeOf } = file.source
  const problems = [
    ...findRepeatedNames(given['limits'], placeOfRule(file)),
    ...findRepeatedNames(given['routes'], (index) => placeOf(['routes', index, 'name']), 'route'),
  ]
  const redisUrl = given['redisUrl']
  if (typeof redisUrl === 'string' && hasPassword(redisUrl)) {
    problems.push(
      problemAt(placeOf(['redisUrl']), 'holds a password, set REDIS_URL in the environment instead'),
    )
  }
  return problems
}

function placeOfRule({ source }: FileReading): PlaceOfRule {
  return (index, field) => source.placeOf(['limits', index, field])
}

function warnOfDisabling(text: string | undefined): string[] {
  if (!text || text === '0') return []
  if (text === '1') return ['RATE_LIMITING_DISABLED: 1, rate limiting is off until a restart without it']
  return [`RATE_LIMITING_DISABLED: got ${showValue(text)}, only 1 turns rate limiting off: it stays on`]
}

/** A file without limits is probably a mistake: most people write one to have limits of their own. */
function warnOfBuiltInTable(name: string, { source }: FileReading): string {
  const what = Object.keys(source.given).length === 0 ? 'is empty' : 'has no limits'
  return `${name}: ${what}, the built-in table of limits applies`
}

function warnOfNearNames(cwd: string): string[] {
  return findNearNames(cwd).map((name) => `${name}: ignored, the settings file must be named ${defaultName}`)
}

function warnOfTrust(
  { trustedProxies, clientAddressHeader }: SettingsOf<typeof gatewayTable>,
  { label }: Place,
): string[] {
  const everyone = trustedProxies.filter((range) => range.endsWith('/0'))
  const misspelled = sortTrustedProxies(trustedProxies).hosts.flatMap((host) => {
    const meant = meantNetwork(host)
    return meant === undefined
      ? []
      : [`${label}: ${host} is looked up as the name of a host, did you mean ${meant}?`]
  })
  const warnings = everyone.map(
    (range) =>
      `${label}: ${range} trusts everybody: every client can choose its address with ${clientAddressHeader}`,
  )
  return [...warnings, ...misspelled]
}
