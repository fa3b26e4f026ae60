import { showUrl } from '../../../shared/settings/addresses.ts'
import { nearestWord } from '../../../shared/settings/did-you-mean.ts'
import { problemAt, showValue, type Source } from '../../../shared/settings/problems.ts'
import { fileName, fileNames, variableName } from '../../../shared/settings/table.ts'
import { listFields } from '../clients/client-list.ts'
import { tokenFields } from '../clients/token-settings.ts'
import { ruleFields, ruleName, writtenName } from '../rules/limits.ts'
import { refusalFields } from '../replies/refusal.ts'
import { routeFields } from '../routes/routes.ts'
import { gatewayTable } from '../settings-table.ts'
import { webhookFields } from '../webhooks/webhooks.ts'
import type { YamlMapping } from './yaml-document.ts'

const settings = Object.entries(gatewayTable)
const shows = new Map<string, ((value: unknown) => string) | undefined>([
  ...settings.flatMap(([property, setting]) =>
    fileNames(property, setting).map((field) => [field, setting.kind.show] as const),
  ),
  ['webhooks', showUrl] as const,
])
const variablesOnly = new Map(
  settings
    .filter(([, { environmentOnly }]) => environmentOnly)
    .map(([property]) => [fileName(property), variableName(property)]),
)
const knownFields = [
  ...shows.keys(),
  'allowList',
  'denyList',
  'cors',
  'refusal',
  'jwt',
  'webhooks',
  'preset',
  'routes',
  'limits',
  ...variablesOnly.keys(),
]

/**
 * The settings file as a source of settings. Messages begin with `sluice.yaml:4: port` or `sluice.yaml:9: rule "login", window`.
 *
 * @param name the file's path as it was given
 */
export function createFileSource(name: string, { value: given, lineOf, lineOfName }: YamlMapping): Source {
  const placeAt = (line: number, subject: string | undefined) => ({
    line,
    label: subject === undefined ? `${name}:${line}` : `${name}:${line}: ${subject}`,
  })
  return {
    given,
    placeOf: (path) => placeAt(lineOf(path), subjectOf(given, path)),
    // A URL may hold a password.
    show: (field, value) => (shows.get(field === 'routes' ? 'upstream' : field) ?? showValue)(value),
    problemOfUnknown: (path) => {
      const place = placeAt(lineOfName(path), subjectOf(given, path.slice(0, -1)))
      return problemAt(place, unknownField(String(path.at(-1)), fieldsAt(path)))
    },
  }
}

/** The subject of a path, for messages: `port`, `rule "login", window`; a rule without a valid name has its number. */
function subjectOf(
  given: Readonly<Record<string, unknown>>,
  path: readonly PropertyKey[],
): string | undefined {
  const [field, index, ruleField] = path
  if ((field !== 'limits' && field !== 'routes') || index === undefined)
    return field === undefined ? undefined : String(field)
  const kind = field === 'limits' ? 'rule' : 'route'
  const rule = `${kind} ${nameOf(given[field], Number(index)) ?? Number(index) + 1}`
  return ruleField === undefined ? rule : `${rule}, ${String(ruleField)}`
}

/** The name of a rule or a route, in quotes; undefined if it has no valid one. */
function nameOf(entries: unknown, index: number): string | undefined {
  const name = writtenName(Array.isArray(entries) ? entries[index] : undefined)
  return name !== undefined && ruleName.test(name) ? `"${name}"` : undefined
}

/** The fields that there are beside the last of a path. */
function fieldsAt(path: readonly PropertyKey[]): readonly string[] {
  if (path.length === 1) return knownFields
  if (path.at(-2) === 'cors') return ['origins']
  if (path.at(-2) === 'refusal') return Object.keys(refusalFields)
  if (path[0] === 'webhooks') return Object.keys(webhookFields)
  if (path[0] === 'routes') return Object.keys(routeFields)
  if (path[0] === 'jwt') return Object.keys(tokenFields)
  return path.some((step) => step === 'allowList' || step === 'denyList') ? listFields : fieldsOfRule
}

const fieldsOfRule = Object.keys(ruleFields)
const otherNamesOfLimits: ReadonlySet<string> = new Set(['rules', 'ratelimits', 'ratelimit', 'policies'])

/** Fields in the place of others, and names that other gateways and libraries have for them. */
function meantAtTop(field: string): string | undefined {
  if (otherNamesOfLimits.has(field.toLowerCase().replace(/[-_]/g, ''))) return 'did you mean limits?'
  const isOfRule = fieldsOfRule.includes(field) || meantInRule.has(field.toLowerCase())
  return isOfRule ? `it belongs in a rule: ${exampleOfRule}` : undefined
}

const exampleOfRule = 'limits: [{ name: login, match: POST /login, requests: 30, window: 15m }]'
const asMatch = 'write method and path as match: POST /login'
const asRequests = 'did you mean requests?'
const asWindow = 'did you mean window?'
const meantInRule: ReadonlyMap<string, string> = new Map([
  ...['path', 'paths', 'url', 'uri', 'route', 'endpoint', 'method', 'methods'].map(
    (name) => [name, asMatch] as const,
  ),
  ...['limit', 'max', 'count', 'quota', 'points', 'average'].map((name) => [name, asRequests] as const),
  ...['period', 'per', 'interval', 'duration', 'windowms', 'unit', 'ttl'].map(
    (name) => [name, asWindow] as const,
  ),
  ['rate', 'write a rate as requests and window: requests: 30, window: 15m'],
])

function unknownField(field: string, known: readonly string[]): string {
  const unknown = `unknown field ${showValue(field)}`
  const near = nearestWord(field, known)
  const variable = near === undefined ? undefined : variablesOnly.get(near)
  const meant =
    known === knownFields
      ? meantAtTop(field)
      : known === fieldsOfRule
        ? meantInRule.get(field.toLowerCase())
        : undefined
  if (meant !== undefined) return `${unknown}, ${meant}`
  if (variable !== undefined) return `${unknown}, set ${variable} in the environment instead`
  return near === undefined ? unknown : `${unknown}, did you mean ${near}?`
}
