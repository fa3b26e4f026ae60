import { isDeepStrictEqual } from 'node:util'
import type { Steps } from '../../../shared/steps.ts'
import type { Rule } from '../../policy.ts'
import { usesFallback, type UpstreamRoute } from '../../limits/rules/upstream-routes.ts'
import { describeRedis, parseRedisUrl } from '../../limits/store/redis/connecting/url.ts'
import { continueRules } from '../../limits/rules/continue-rules.ts'
import type { GatewaySettings } from '../settings.ts'
import { isEqual } from './is-equal.ts'
import { hashTableInSteps } from './table-hash.ts'

/** The settings that form the table of limits, which can change without a restart. */
const tableFields = [
  'rules',
  'limitsFile',
  'timezone',
  'allowList',
  'denyList',
  'cors',
  'refusals',
  'jwt',
  'geoip',
  'deviceSecret',
  'routes',
  'requestHeaders',
  'rateLimitHeaders',
] as const

export type NameChanges = {
  readonly added: readonly string[]
  readonly changed: readonly string[]
  readonly removed: readonly string[]
}

/** The changes in a settings file. */
export type TableChange = {
  /** The current settings with the new table. Policies that stay are the same objects. */
  readonly settings: GatewaySettings
  /** The result of `hashTable`. */
  readonly tableHash: string
  /** Keys of policies that are new or changed, as `policyKey` makes them. */
  readonly revised: readonly string[]
  /** Names of rules. A rule also counts as changed if it only matches other requests. */
  readonly added: readonly string[]
  readonly changed: readonly string[]
  readonly removed: readonly string[]
  /** Names of routes. */
  readonly routes: NameChanges
  /** Settings that differ and need a restart, by their names in the file. */
  readonly restart: readonly string[]
}

/**
 * @param running the current settings
 * @param atStart the settings as they were read at the start, for those that cannot change without a restart
 */
export function* compareTables(
  running: GatewaySettings,
  atStart: GatewaySettings,
  next: GatewaySettings,
): Steps<TableChange> {
  const { rules, revised } = yield* continueRules(running.rules, next.rules)
  const table = Object.fromEntries(tableFields.map((field) => [field, next[field]]))
  const byName = (all: readonly Rule[]): ReadonlyMap<string, Rule> =>
    new Map(all.map((rule) => [rule.policy.name, rule]))
  const routesByName = ({ routes = [] }: GatewaySettings): ReadonlyMap<string, UpstreamRoute> =>
    new Map(routes.map((route) => [route.name, route]))
  // A different upstream, given or default, is not used before a restart.
  const { isUpstreamGiven } = running.upstreamUrl.href === next.upstreamUrl.href ? next : running
  const hasFallback = usesFallback(isUpstreamGiven, next.routes)
  const settings = { ...running, ...table, rules, isUpstreamGiven, hasFallback }
  yield
  return {
    settings,
    tableHash: yield* hashTableInSteps(settings),
    revised,
    ...(yield* compareNamed(byName(running.rules), byName(rules))),
    routes: yield* compareNamed(routesByName(running), routesByName(next)),
    restart: yield* findFixedChanges(atStart, next),
  }
}

function* compareNamed<Entry>(
  before: ReadonlyMap<string, Entry>,
  after: ReadonlyMap<string, Entry>,
): Steps<NameChanges> {
  const added: string[] = []
  const changed: string[] = []
  for (const [name, entry] of after) {
    if (!before.has(name)) added.push(name)
    else if (!(yield* isEqual(before.get(name), entry))) changed.push(name)
    yield
  }
  return { added, changed, removed: [...before.keys()].filter((name) => !after.has(name)) }
}

/** Finds settings that differ and need a restart. Settings that only the environment can set cannot change. */
function* findFixedChanges(atStart: GatewaySettings, next: GatewaySettings): Steps<readonly string[]> {
  const changes: string[] = []
  const names: Iterable<readonly [keyof GatewaySettings, string]> = [
    ...next.namesInFile,
    ['crowdsec', 'crowdsec'],
    ['webhooks', 'webhooks'],
  ]
  for (const [field, name] of names) {
    const isInTable = tableFields.some((other) => other === field)
    if (!isInTable && !isSame(valueOf(atStart, field), valueOf(next, field))) changes.push(name)
    yield
  }
  return changes
}

/** Returns the value of a setting. Leaves out the login at Redis if it comes from a file, which each new connection reads again. */
function valueOf(settings: GatewaySettings, field: keyof GatewaySettings): unknown {
  const { redisUrl, secretFiles } = settings
  if (field !== 'redisUrl' || redisUrl === undefined || !secretFiles.has('REDIS_URL_FILE'))
    return settings[field]
  return describeRedis(parseRedisUrl(redisUrl))
}

function isSame(one: unknown, other: unknown): boolean {
  return one instanceof URL && other instanceof URL ? one.href === other.href : isDeepStrictEqual(one, other)
}
