import { nearestWord, plain } from '../../../shared/settings/did-you-mean.ts'
import { fileName, variableName } from '../../../shared/settings/table.ts'
import { ruleFields } from '../rules/limits.ts'
import { partNames } from '../rules/partition-key.ts'
import { gatewayTable } from '../settings-table.ts'
import { fieldsAt } from './schema.ts'

const variablesOnly = new Map(
  Object.entries(gatewayTable)
    .filter(([, { environmentOnly }]) => environmentOnly)
    .map(([property]) => [fileName(property), variableName(property)]),
)

/** The fields that an unknown name probably stands for, and the hint that ends the message. */
type Suggestion = { readonly fields: readonly string[]; readonly hint: string }

const exampleOfRule = 'limits: [{ name: login, match: POST /login, requests: 30, window: 15m }]'
const belongsInRule: Suggestion = { fields: [], hint: `it belongs in a rule: ${exampleOfRule}` }
const belongsAtTop: Suggestion = { fields: [], hint: 'it belongs at the top level of the file' }
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
  [didYouMean('cost'), ['costs']],
  [{ fields: ['clients'], hint: 'write the client as clients: { ip: 10.0.0.0/8 }' }, ['ip']],
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
/** Kinds of parts of a key, which are fields elsewhere, as in `allowList: [{ header: … }]`. */
const otherNamesInKey = namesOfOthers(
  Object.keys(partNames).map((kind) => [
    { fields: ['first'], hint: `write a part as one text without spaces: key: ${kind}:NAME` },
    [kind],
  ]),
)
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

/**
 * Suggests what an unknown field of the settings file probably stands for. Returns undefined if no field is similar.
 *
 * @param path the path of the mapping that has the field
 */
export function suggestionFor(field: string, path: readonly PropertyKey[]): Suggestion | undefined {
  const known = fieldsAt(path)
  const isAtTop = path.length === 0
  const other = otherNamesAt(path)?.get(plain(field))
  if (other?.fields.every((each) => known.includes(each))) return other
  if (isAtTop && Object.hasOwn(ruleFields, field)) return belongsInRule
  const near = nearestWord(field, isAtTop ? [...known, ...variablesOnly.keys()] : known)
  if (near === undefined && !isAtTop) return fieldsAt([]).includes(field) ? belongsAtTop : undefined
  if (near === undefined) return otherNamesInRule.has(plain(field)) ? belongsInRule : undefined
  const variable = isAtTop ? variablesOnly.get(near) : undefined
  return variable === undefined
    ? didYouMean(near)
    : { fields: [], hint: `set ${variable} in the environment instead` }
}

function otherNamesAt(path: readonly PropertyKey[]): ReadonlyMap<string, Suggestion> | undefined {
  if (path.length === 0) return otherNamesAtTop
  if (path.at(-1) === 'refusal') return otherNamesInRefusal
  if (path[0] === 'limits' && path[2] === 'key') return otherNamesInKey
  const isInRule = path[0] === 'limits' && (path.length === 2 || path[2] === 'overrides')
  return isInRule ? otherNamesInRule : undefined
}
