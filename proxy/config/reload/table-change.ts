import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { fileNames } from '../../../shared/settings/table.ts'
import type { Rule } from '../../policy.ts'
import type { UpstreamRoute } from '../../rules/upstream-routes.ts'
import { continueRules } from '../../rules/continue-rules.ts'
import { gatewayTable } from '../settings-table.ts'
import type { GatewaySettings } from '../settings.ts'

/** What of the settings is the table of limits, which can be changed without a restart. */
const tableFields = [
  'rules',
  'limitsFile',
  'allowList',
  'denyList',
  'cors',
  'refusals',
  'jwt',
  'routes',
  'requestHeaders',
  'rateLimitHeaders',
] as const

export type NameChanges = {
  readonly added: readonly string[]
  readonly changed: readonly string[]
  readonly removed: readonly string[]
}

/** What a changed settings file comes to. */
export type TableChange = {
  /** The settings in force with the new table. Policies that stay are the same objects. */
  readonly settings: GatewaySettings
  /** Keys of policies that are new or changed, as `policyKey` makes them. */
  readonly revised: readonly string[]
  /** Names of rules. A rule is changed also if only the requests are others that it matches. */
  readonly added: readonly string[]
  readonly changed: readonly string[]
  readonly removed: readonly string[]
  /** Names of routes. */
  readonly routes: NameChanges
  /** Settings that differ and need a restart, by their names in the file. */
  readonly restart: readonly string[]
}

/**
 * @param running the settings in force
 * @param atStart those that cannot be changed without a restart, as they were read at the start
 */
export function compareTables(
  running: GatewaySettings,
  atStart: GatewaySettings,
  next: GatewaySettings,
): TableChange {
  const { rules, revised } = continueRules(running.rules, next.rules)
  const table = Object.fromEntries(tableFields.map((field) => [field, next[field]]))
  const byName = (all: readonly Rule[]): ReadonlyMap<string, Rule> =>
    new Map(all.map((rule) => [rule.policy.name, rule]))
  const routesByName = ({ routes = [] }: GatewaySettings): ReadonlyMap<string, UpstreamRoute> =>
    new Map(routes.map((route) => [route.name, route]))
  return {
    settings: { ...running, ...table, rules },
    revised,
    ...compareNamed(byName(running.rules), byName(rules)),
    routes: compareNamed(routesByName(running), routesByName(next)),
    restart: fixedSettings.filter(([field]) => !isSame(atStart[field], next[field])).map(([, name]) => name),
  }
}

function compareNamed<Entry>(
  before: ReadonlyMap<string, Entry>,
  after: ReadonlyMap<string, Entry>,
): NameChanges {
  const names = [...after.keys()]
  return {
    added: names.filter((name) => !before.has(name)),
    changed: names.filter(
      (name) => before.has(name) && !isDeepStrictEqual(before.get(name), after.get(name)),
    ),
    removed: [...before.keys()].filter((name) => !after.has(name)),
  }
}

/** All but those of the table, and those of the environment alone, which stay: the property and the name in the file. */
const fixedSettings: readonly (readonly [field: keyof GatewaySettings, name: string])[] = [
  ...(Object.keys(gatewayTable) as (keyof typeof gatewayTable)[]).flatMap((field) => {
    const [name] = fileNames(field, gatewayTable[field])
    const isFixed = name !== undefined && !tableFields.some((other) => other === field)
    return isFixed ? [[field, name] as const] : []
  }),
  ['webhooks', 'webhooks'],
]

function isSame(one: unknown, other: unknown): boolean {
  return one instanceof URL && other instanceof URL ? one.href === other.href : isDeepStrictEqual(one, other)
}

/**
 * A short SHA-256 of the table of limits in force, files that it names included: the same on all replicas that have the same
 * table, whatever its file is called and however it is written.
 */
export function hashTable(settings: GatewaySettings): string {
  const { rateLimitingDisabled, rules, allowList, denyList, cors, refusals, jwt, rateLimitHeaders, routes } =
    settings
  const { requestHeaders } = settings
  const table = {
    rules: rateLimitingDisabled ? [] : rules,
    allowList,
    denyList,
    cors,
    refusals: [refusals.everyRule, ...refusals.ofRules],
    jwt,
    rateLimitHeaders,
    ...(routes && { routes }),
    ...(requestHeaders.length > 0 && { requestHeaders }),
  }
  // Workers count the revisions of their rules (`reviseRules`), which are no part of the table.
  const text = JSON.stringify(table, (name, value: unknown) => (name === 'revision' ? undefined : value))
  return createHash('sha256').update(text).digest('hex').slice(0, 12)
}
