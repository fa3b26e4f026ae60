import { problemAt, type Problem } from '../../../shared/settings/problems.ts'
import { variableName } from '../../../shared/settings/table.ts'

const isFixed = (value: string): string => `is ${value}: remove it`

/**
 * Settings of former versions, by their field in the file: the behaviour now, and the change to make.
 *
 * @internal exported for its test
 */
export const removedSettings: ReadonlyMap<string, string> = new Map([
  ['maxHeaderCount', isFixed('100')],
  ['maxTargetSize', 'is half of maxHeaderSize (MAX_HEADER_SIZE): set that'],
  ['maxStreams', isFixed('100')],
  ['responseBufferSize', isFixed('256k')],
  ['maxUnreadSize', isFixed('192m, or a quarter of the memory if that is less')],
  ['upstreamMaxAge', isFixed('30s')],
  ['upstreamMaxRequests', isFixed('10000')],
  ['redisCaFile', 'name the file in redisUrl: rediss://HOST?ca=FILE'],
  ['redisCertFile', 'name the file in redisUrl: rediss://HOST?cert=FILE&key=FILE'],
  ['redisKeyFile', 'name the file in redisUrl: rediss://HOST?cert=FILE&key=FILE'],
  ['redisSentinelUsername', 'set it in REDIS_URL: ?sentinelUsername=NAME&sentinelPassword=PASSWORD'],
  ['redisSentinelPassword', 'set it in REDIS_URL: ?sentinelPassword=PASSWORD'],
  ['refusalLog', 'set accessLog: refused (ACCESS_LOG=refused)'],
  ['tlsMinVersion', 'set NODE_OPTIONS=--tls-min-v1.3 to leave out TLS 1.2'],
  ['tlsCiphers', 'HTTPS has the suites of Mozilla\'s "intermediate" configuration: remove it'],
  ['requestsPerConnection', 'connections of clients serve any number: remove it'],
  ['upstreamBareLf', 'lines of response headers have to end with CRLF: remove it'],
])

const fields = new Map([
  ...[...removedSettings.keys()].map((field): [string, string] => [variableName(field), field]),
  ['REDIS_SENTINEL_PASSWORD_FILE', 'redisSentinelPassword'],
])

/** Whether a former version read this variable. */
export function isRemovedVariable(variable: string): boolean {
  return fields.has(variable)
}

/** The message about a field of a former version; undefined for any other. */
export function problemOfRemoved(field: string): string | undefined {
  const now = removedSettings.get(field)
  return now === undefined ? undefined : `no longer a setting, ${now}`
}

/** Finds variables of former versions: operators who set one believe that it has an effect. */
export function findRemoved(env: NodeJS.ProcessEnv): Problem[] {
  return [...fields].flatMap(([variable, field]) =>
    env[variable] ? [problemAt({ line: 0, label: variable }, problemOfRemoved(field) ?? '')] : [],
  )
}
