import { showOrigin, showUrl } from '../../../shared/settings/addresses.ts'
import { nearestWord } from '../../../shared/settings/did-you-mean.ts'
import { problemAt, showValue, type Source } from '../../../shared/settings/problems.ts'
import { NOT_SHOWN } from '../../../shared/settings/secret-path.ts'
import { fileName, fileNames, variableName } from '../../../shared/settings/table.ts'
import { geoipFields } from '../clients/geoip.ts'
import { crowdsecFields } from '../clients/crowdsec.ts'
import { listFields } from '../clients/client-list.ts'
import { tokenFields } from '../clients/token-settings.ts'
import { conditionFields } from '../rules/conditions/conditions.ts'
import { overFields } from '../rules/over.ts'
import { ruleFields, ruleName, writtenName } from '../rules/limits.ts'
import { refusalFields } from '../replies/refusal.ts'
import { routeFields } from '../routes/routes.ts'
import { gatewayTable } from '../settings-table.ts'
import { webhookFields } from '../webhooks/webhooks.ts'
import { problemOfUnsupported } from '../written/unsupported-settings.ts'
import type { YamlMapping } from './yaml-document.ts'

const settings = Object.entries(gatewayTable)
const shows = new Map<string, ((value: unknown) => string) | undefined>([
  ...settings.flatMap(([property, setting]) =>
    fileNames(property, setting).map((field) => [field, setting.kind.show] as const),
  ),
  ['webhooks', showOrigin] as const,
  ['crowdsec', showUrl] as const,
  ['jwt', showUrl] as const,
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
  'crowdsec',
  'cors',
  'refusal',
  'jwt',
  'geoip',
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
    show: (field, value, path) => {
      if (path.includes('requestHeaders') && mayBeLogin(value)) return NOT_SHOWN
      if (field === 'webhooks' && path.includes('events')) return showValue(value)
      if ((field === 'jwt' || field === 'crowdsec') && path.length === 1 && mayBeSecret(value))
        return NOT_SHOWN
      // A URL may hold a password.
      return (shows.get(field === 'routes' ? 'upstream' : field) ?? showValue)(value)
    },
    problemOfUnknown: (path) => {
      const place = placeAt(lineOfName(path), subjectOf(given, path.slice(0, -1)))
      const field = String(path.at(-1))
      const unsupported = path.length === 1 ? problemOfUnsupported(field) : undefined
      if (unsupported !== undefined)
        return { ...problemAt(placeAt(place.line, field), unsupported), suggested: [] }
      const unknown = `unknown field ${showValue(field)}`
      const suggestion = suggestionFor(field, fieldsAt(path))
      return {
        ...problemAt(place, suggestion === undefined ? unknown : `${unknown}, ${suggestion.hint}`),
        suggested: suggestion?.fields ?? [],
      }
    },
  }
}

/** Whether a value may be a login, such as a key of digits without quotes. */
function mayBeLogin(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && typeof value !== 'object'
}

/** Whether a value may be a secret that was written in place of the mapping that names its file. */
function mayBeSecret(value: unknown): boolean {
  return mayBeLogin(value) && !(typeof value === 'string' && /^https?:\/\//.test(value))
}

/**
 * Returns the subject of a path, for messages: `port`, `refusal.status`, `rule "login", window`, `rule "login", ban.for`. A rule without a
 * valid name is referred to by its number.
 */
function subjectOf(
  given: Readonly<Record<string, unknown>>,
  path: readonly PropertyKey[],
): string | undefined {
  const [field, index, ...inRule] = path
  if ((field !== 'limits' && field !== 'routes') || index === undefined) return dotted(path)
  const kind = field === 'limits' ? 'rule' : 'route'
  const rule = `${kind} ${nameOf(given[field], Number(index)) ?? Number(index) + 1}`
  const within = dotted(inRule)
  return within === undefined ? rule : `${rule}, ${within}`
}

/** Mappings whose members are not fields, but names of headers and the like. */
const mappingsOfHeaders: ReadonlySet<PropertyKey> = new Set([
  'headers',
  'requestHeaders',
  'header',
  'cookie',
  'query',
  'clients',
])

/** Joins the fields of a path, up to the first entry of a list or header, which the line number identifies. Undefined without a field. */
function dotted(path: readonly PropertyKey[]): string | undefined {
  const end = path.findIndex(
    (step, at) => typeof step === 'number' || (at > 0 && mappingsOfHeaders.has(path[at - 1] ?? '')),
  )
  return path.slice(0, end === -1 ? undefined : end).join('.') || undefined
}

/** The name of a rule or a route, in quotes; undefined without a valid name. */
function nameOf(entries: unknown, index: number): string | undefined {
  const name = writtenName(Array.isArray(entries) ? entries[index] : undefined)
  return name !== undefined && ruleName.test(name) ? `"${name}"` : undefined
}

/** The sibling fields of the last field of a path. */
function fieldsAt(path: readonly PropertyKey[]): readonly string[] {
  if (path.length === 1) return knownFields
  if (path.at(-2) === 'cors') return ['origins']
  if (path.at(-2) === 'over') return Object.keys(overFields)
  if (path.at(-2) === 'refusal') return fieldsOfRefusal
  if (path[0] === 'webhooks') return Object.keys(webhookFields)
  if (path[0] === 'routes') return Object.keys(routeFields)
  if (path[0] === 'geoip') return geoipFields
  if (path[0] === 'crowdsec') return Object.keys(crowdsecFields)
  if (path[0] === 'jwt') return Object.keys(tokenFields)
  if (path.some((step) => step === 'when' || step === 'unless')) return conditionFields
  return path.some((step) => step === 'allowList' || step === 'denyList') ? listFields : fieldsOfRule
}

const fieldsOfRule = Object.keys(ruleFields)
const fieldsOfRefusal = Object.keys(refusalFields)
const exampleOfRule = 'limits: [{ name: login, match: POST /login, requests: 30, window: 15m }]'

/** The fields that an unknown name probably stands for, and the hint that ends the message. */
type Suggestion = { readonly fields: readonly string[]; readonly hint: string }

const didYouMean = (field: string): Suggestion => ({ fields: [field], hint: `did you mean ${field}?` })

/** Names that other gateways and libraries use for these fields, in lower case, without `-` and `_`. */
const otherNamesInRule = namesOfOthers([
  [
    { fields: ['match'], hint: 'write method and path as match: POST /login' },
    ['path', 'paths', 'url', 'uri', 'route', 'endpoint', 'method', 'methods'],
  ],
  [didYouMean('requests'), ['limit', 'max', 'count', 'quota', 'points', 'average']],
  [didYouMean('over'), ['exceeded', 'onlimit', 'onexceeded', 'fallback', 'overflow', 'action']],
  [didYouMean('window'), ['period', 'per', 'interval', 'duration', 'windowms', 'unit', 'ttl']],
  [didYouMean('burst'), ['burstsize', 'capacity']],
  [
    { fields: [], hint: 'write the status codes that count: countStatus: [4xx, 5xx]' },
    ['skipsuccessfulrequests', 'requestwassuccessful'],
  ],
  [
    { fields: [], hint: 'write the status codes that count: countStatus: [2xx, 3xx]' },
    ['skipfailedrequests'],
  ],
  [{ fields: [], hint: 'write the response as refusal: { body: { error: Slow down } }' }, ['message']],
  [didYouMean('key'), ['keygenerator', 'keyby', 'by']],
  [{ fields: [], hint: 'name paths in except, and clients in allowList' }, ['skip']],
  [didYouMean('timezone'), ['tz', 'zone', 'timezone']],
  [
    {
      fields: ['requests', 'window'],
      hint: 'write a rate as requests and window: requests: 30, window: 15m',
    },
    ['rate'],
  ],
])
const otherNamesInRefusal = namesOfOthers([
  [didYouMean('status'), ['statuscode', 'code']],
  [didYouMean('body'), ['message', 'text', 'content', 'json']],
])
const otherNamesAtTop = namesOfOthers([
  [didYouMean('limits'), ['rules', 'limit', 'ratelimits', 'ratelimit', 'policies']],
  [didYouMean('upstream'), ['backend', 'target', 'proxypass']],
  [didYouMean('redisUrl'), ['redis', 'store', 'storage']],
  [didYouMean('trustedProxies'), ['trustproxy', 'setrealipfrom']],
  [didYouMean('clientAddressHeader'), ['realipheader']],
  [didYouMean('maxBodySize'), ['maxbody', 'bodylimit', 'clientmaxbodysize']],
  [didYouMean('upstreamTimeout'), ['timeout', 'proxyreadtimeout']],
  [didYouMean('port'), ['listen']],
  [didYouMean('denyList'), ['blacklist', 'blocklist']],
  [didYouMean('allowList'), ['whitelist']],
  [
    { fields: ['tlsCertFile', 'tlsKeyFile'], hint: 'name the files in tlsCertFile and tlsKeyFile' },
    ['tls', 'ssl', 'https'],
  ],
])

function namesOfOthers(
  entries: readonly (readonly [Suggestion, readonly string[]])[],
): ReadonlyMap<string, Suggestion> {
  return new Map(entries.flatMap(([suggestion, names]) => names.map((name) => [name, suggestion] as const)))
}

/** Returns undefined if no field is similar. */
function suggestionFor(field: string, known: readonly string[]): Suggestion | undefined {
  const plain = field.toLowerCase().replace(/[-_]/g, '')
  if (known === fieldsOfRule && otherNamesInRule.has(plain)) return otherNamesInRule.get(plain)
  if (known === fieldsOfRefusal && otherNamesInRefusal.has(plain)) return otherNamesInRefusal.get(plain)
  if (known === knownFields) {
    if (otherNamesAtTop.has(plain)) return otherNamesAtTop.get(plain)
    if (fieldsOfRule.includes(field) || otherNamesInRule.has(plain))
      return { fields: [], hint: `it belongs in a rule: ${exampleOfRule}` }
  }
  const near = nearestWord(field, known)
  if (near === undefined) return undefined
  const variable = variablesOnly.get(near)
  return variable === undefined
    ? didYouMean(near)
    : { fields: [], hint: `set ${variable} in the environment instead` }
}
