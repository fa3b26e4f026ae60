import { nearestWord } from '../../../shared/settings/did-you-mean.ts'
import type { Problem } from '../../../shared/settings/problems.ts'
import { variableName } from '../../../shared/settings/table.ts'
import { gatewayTable } from '../settings-table.ts'
import { secretVariables } from './secret-files.ts'
import { isUnsupportedVariable } from './unsupported-settings.ts'

const prefix = 'SLUICE_'

/** The environment variables that the gateway reads, without the prefix. */
const variables: ReadonlySet<string> = new Set([
  ...Object.keys(gatewayTable).map(variableName),
  ...secretVariables.map((name) => `${name}_FILE`),
  'CONFIG_FILE',
])

/** Variables that this repository's compose files read, possibly in a shell that also runs the gateway. */
const ofComposeFiles: ReadonlySet<string> = new Set([
  'SLUICE_CONFIG',
  'SLUICE_GATEWAY_IMAGE',
  'SLUICE_ORIGIN_IMAGE',
])
/** SLUICE_CONFIG names a folder. If its value looks like a file, CONFIG_FILE was meant. */
const fileEnding = /\.(ya?ml|json)$/i

/**
 * Variables that Kubernetes and Docker's links set for a service named `sluice`, or with a name that begins with `sluice-`:
 * `SLUICE_SERVICE_HOST`, `SLUICE_PORT_80_TCP_ADDR`, and `SLUICE_PORT`, which is a URL there.
 */
const ofServiceLinks = /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP|SCTP)(_|$)/
const linkUrl = /^(tcp|udp|sctp):\/\//

/**
 * Reads the variables that begin with `SLUICE_`: `SLUICE_PORT` stands for `PORT`, and wins if both are set. A variable that names no
 * setting is a problem, except variables of service links and of compose files.
 *
 * @returns the environment with their values under the names without the prefix; `prefixed` lists those names
 */
export function readPrefixedVariables(given: NodeJS.ProcessEnv): {
  readonly env: NodeJS.ProcessEnv
  readonly prefixed: ReadonlySet<string>
  readonly problems: readonly Problem[]
} {
  const env = { ...given }
  const prefixed = new Set<string>()
  const problems: Problem[] = []
  for (const [name, value] of Object.entries(given)) {
    if (!name.startsWith(prefix) || !value) continue
    if (ofServiceLinks.test(name) || (name.endsWith('_PORT') && linkUrl.test(value))) continue
    if (ofComposeFiles.has(name) && !fileEnding.test(value)) continue
    const variable = name.slice(prefix.length)
    if (variables.has(variable) || isUnsupportedVariable(variable)) {
      prefixed.add(variable)
      env[variable] = value
      continue
    }
    const near = variable === 'CONFIG' ? 'CONFIG_FILE' : nearestWord(variable, [...variables])
    const hint = near === undefined ? '' : `, did you mean ${prefix}${near}?`
    problems.push({ line: 0, text: `${name}: unknown setting${hint}` })
  }
  // A secret is given only once: a secret with the prefix overrides a `_FILE` variable without the prefix, and the other way around.
  for (const secret of secretVariables) {
    const file = `${secret}_FILE`
    if (prefixed.has(secret) && !prefixed.has(file)) Reflect.deleteProperty(env, file)
    if (prefixed.has(file) && !prefixed.has(secret)) Reflect.deleteProperty(env, secret)
  }
  return { env, prefixed, problems }
}

/** Adds the prefix to a message about an environment variable that was given with it. */
export function nameAsGiven(text: string, prefixed: ReadonlySet<string>): string {
  const [, variable] = /^([A-Z][A-Z0-9_]*): /.exec(text) ?? []
  return variable !== undefined && prefixed.has(variable) ? `${prefix}${text}` : text
}
