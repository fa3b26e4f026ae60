import { problemAt, type Problem } from '../../../shared/settings/problems.ts'
import { variableName } from '../../../shared/settings/table.ts'

const nameFile = (options: string): string => `name the file in redisUrl: rediss://HOST?${options}`

/**
 * Settings that the gateway does not have, by their field in the file, each with an alternative. Setting one is a mistake even in the
 * environment, where other unknown names without the prefix `SLUICE_` are ignored, because the operator would believe that a connection is
 * safer than it is.
 *
 * @internal exported for its test
 */
export const unsupportedSettings: ReadonlyMap<string, string> = new Map([
  ['redisCaFile', nameFile('ca=FILE')],
  ['redisCertFile', nameFile('cert=FILE&key=FILE')],
  ['redisKeyFile', nameFile('cert=FILE&key=FILE')],
  ['redisSentinelUsername', 'set it in REDIS_URL: ?sentinelUsername=NAME&sentinelPassword=PASSWORD'],
  ['redisSentinelPassword', 'set it in REDIS_URL: ?sentinelPassword=PASSWORD'],
  ['tlsMinVersion', 'set NODE_OPTIONS=--tls-min-v1.3 to leave out TLS 1.2'],
  ['tlsCiphers', 'HTTPS has the suites of Mozilla\'s "intermediate" configuration: remove it'],
])

const fields = new Map([
  ...[...unsupportedSettings.keys()].map((field): [string, string] => [variableName(field), field]),
  ['REDIS_SENTINEL_PASSWORD_FILE', 'redisSentinelPassword'],
])

/** Whether the variable belongs to an unsupported setting. */
export function isUnsupportedVariable(variable: string): boolean {
  return fields.has(variable)
}

/** Returns the message about an unsupported field; undefined for any other field. */
export function problemOfUnsupported(field: string): string | undefined {
  const instead = unsupportedSettings.get(field)
  return instead === undefined ? undefined : `not a setting, ${instead}`
}

/** Finds unsupported variables, because operators who set one believe that it has an effect. */
export function findUnsupported(env: NodeJS.ProcessEnv): Problem[] {
  return [...fields].flatMap(([variable, field]) =>
    env[variable] ? [problemAt({ line: 0, label: variable }, problemOfUnsupported(field) ?? '')] : [],
  )
}
