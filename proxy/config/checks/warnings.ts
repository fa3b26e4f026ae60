import { showValue, type Place } from '../../../shared/settings/problems.ts'
import type { ReadSettings } from '../../../shared/settings/settings.ts'
import type { SettingsOf } from '../../../shared/settings/table.ts'
import type { Rule } from '../../policy.ts'
import { suggestNetwork, sortTrustedProxies } from '../../request/addresses/trusted-proxies.ts'
import { warnOfIdleGeo } from '../clients/geoip.ts'
import { defaultName, findNearNames } from '../file/config-file.ts'
import { placeOfRule, type FileReading } from '../file/schema.ts'
import { noteOnNotation } from '../rules/route-pattern.ts'
import type { gatewayTable } from '../settings-table.ts'
import { warnOfEverybody, warnOfNat64 } from './client-lists.ts'
import { warnOfCosts } from './costly-rules.ts'
import { warnOfBodyKeys } from './decisions.ts'
import { warnOfIdleSecret, warnOfSharedPaths } from './devices.ts'
import {
  warnOfIdleLeases,
  warnOfIdleRules,
  warnOfIdleSettings,
  warnOfIdleTimezone,
  warnOfIdleTokens,
  warnOfIdleTracing,
} from './idle-settings.ts'
import { warnOfUntriedKeys } from './key-files.ts'
import { warnOfIdleRoutes, warnOfShortDelays } from './over.ts'
import { warnOfLowPlans } from './plans.ts'
import { warnOfChosenKeys } from './table.ts'

type Values = SettingsOf<typeof gatewayTable>

/** Valid settings and their sources. */
export type Loaded = {
  readonly env: NodeJS.ProcessEnv
  /** The folder that is searched for the file. */
  readonly cwd: string
  /** The path of the file; undefined without a file. */
  readonly path: string | undefined
  /** The path as it was given, for messages. */
  readonly name: string
  readonly file: FileReading | undefined
  readonly read: ReadSettings<typeof gatewayTable>
  readonly values: Values
  /** The rules of the file; undefined if the built-in table applies. */
  readonly written: readonly Rule[] | undefined
  /** The current rules. */
  readonly rules: readonly Rule[]
  /** The text of the file with the key set that verifies tokens; undefined without such a file. */
  readonly keySet: string | undefined
}

/** Warns of valid settings that are probably mistakes. */
export function findWarnings(loaded: Loaded): string[] {
  const { env, cwd, path, file, read, values, rules } = loaded
  return [
    ...(path === undefined ? warnOfNearNames(cwd) : []),
    ...warnOfDisabling(env['RATE_LIMITING_DISABLED']),
    ...warnOfTrust(values, read.placeOf('trustedProxies')),
    ...(file ? warnOfFile(file, loaded) : []),
    ...warnOfIdleSecret(rules, values, read.placeOf('deviceSecret')),
    ...(file?.values.geoip ? warnOfIdleGeo(rules, file.values.geoip, file.source.placeOf) : []),
    ...warnOfIdleSettings(read),
    ...warnOfIdleTracing(env, values),
    ...warnOfIdleTimezone(rules, read),
  ]
}

function warnOfFile(file: FileReading, { name, values, written, keySet }: Loaded): string[] {
  const { placeOf } = file.source
  const { routes } = file.values
  const ofRoute = (index: number, field?: string): Place =>
    placeOf(['routes', index, ...(field === undefined ? [] : [field])])
  const ofRule = placeOfRule(file)
  const notations = warnOfNotations(file, written)
  if (!written)
    return [
      ...(values.rateLimitingDisabled ? [] : [warnOfBuiltInTable(name, file)]),
      ...warnOfEverybody(file.values, placeOf),
      ...warnOfNat64(file.values, placeOf),
      ...warnOfIdleRoutes(routes, [], ofRoute),
      ...notations,
    ]
  return [
    ...warnOfEverybody(file.values, placeOf),
    ...warnOfNat64(file.values, placeOf),
    ...warnOfChosenKeys(written, ofRule),
    ...warnOfCosts(written, ofRule),
    ...warnOfSharedPaths(written, ofRule),
    ...warnOfBodyKeys(written, values.decisionsPort, ofRule),
    ...warnOfIdleRoutes(routes, written, ofRoute),
    ...notations,
    ...warnOfShortDelays(written, ofRule),
    ...warnOfLowPlans(written, ofRule),
    ...warnOfIdleLeases(written, values.redisUrl, ofRule),
    ...warnOfIdleRules(written, ofRule),
    ...(file.values.jwt ? warnOfIdleTokens(written, placeOf(['jwt'])) : []),
    ...(keySet === undefined ? [] : warnOfUntriedKeys(keySet, placeOf(['jwt', 'jwksFile']))),
  ]
}

/** Warns of paths of rules and routes in the notation of another program. */
function warnOfNotations(file: FileReading, rules: readonly Rule[] = []): string[] {
  const ofRule = placeOfRule(file)
  const warnOf = (path: string, { label }: Place): string[] => {
    const note = noteOnNotation(path)
    return note === undefined ? [] : [`${label}: ${note}`]
  }
  return [
    ...[...rules.entries()].flatMap(([index, { match, except }]) => [
      ...match.flatMap(({ path }) => warnOf(path, ofRule(index, 'match'))),
      ...except.flatMap(({ path }) => warnOf(path, ofRule(index, 'except'))),
    ]),
    ...[...(file.values.routes ?? []).entries()].flatMap(([index, { paths = [] }]) =>
      paths.flatMap((path) => warnOf(path, file.source.placeOf(['routes', index, 'paths']))),
    ),
  ]
}

function warnOfDisabling(text: string | undefined): string[] {
  if (!text || text === '0') return []
  if (text === '1') return ['RATE_LIMITING_DISABLED: 1, rate limiting is off until a restart without it']
  return [`RATE_LIMITING_DISABLED: got ${showValue(text)}, only 1 turns rate limiting off: it stays on`]
}

/** A file without limits is probably a mistake: most people write a file to set their own limits. */
function warnOfBuiltInTable(name: string, { source }: FileReading): string {
  const what = Object.keys(source.given).length === 0 ? 'is empty' : 'has no limits'
  return `${name}: ${what}, the built-in table of limits applies`
}

function warnOfNearNames(cwd: string): string[] {
  return findNearNames(cwd).map((name) => `${name}: ignored, the settings file must be named ${defaultName}`)
}

function warnOfTrust({ trustedProxies, clientAddressHeader }: Values, { label }: Place): string[] {
  const everyone = trustedProxies.filter((range) => range.endsWith('/0'))
  const misspelled = sortTrustedProxies(trustedProxies).hosts.flatMap((host) => {
    const suggestion = suggestNetwork(host)
    return suggestion === undefined
      ? []
      : [`${label}: ${host} is looked up as the name of a host, did you mean ${suggestion}?`]
  })
  const warnings = everyone.map(
    (range) =>
      `${label}: ${range} trusts everybody: every client can choose its address with ${clientAddressHeader}`,
  )
  return [...warnings, ...misspelled]
}
