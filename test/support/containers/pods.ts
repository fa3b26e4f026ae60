import { problemsOf, directoryWith } from '../gateway/settings.ts'
import type { Manifest } from './manifests.ts'

type Variable = { readonly name: string; readonly value?: string }
type Deployment = {
  readonly spec: {
    readonly template: {
      readonly spec: { readonly containers: readonly [{ readonly env: readonly Variable[] }] }
    }
  }
}
type ConfigMap = { readonly data: Readonly<Record<string, string>> }

/** The environment variables of the gateway's container, by name; undefined if the value is in a secret. */
export function variablesOf(manifests: readonly Manifest[]): Readonly<Record<string, string | undefined>> {
  const deployment = manifests.find(({ kind }) => kind === 'Deployment') as unknown as Deployment
  const { env } = deployment.spec.template.spec.containers[0]
  const names = env.map(({ name }) => name)
  if (new Set(names).size !== names.length) throw new Error(`a variable is set twice: ${names.join(' ')}`)
  return Object.fromEntries(env.map(({ name, value }) => [name, value]))
}

/** The files of the config map, by name. */
export function configFilesOf(manifests: readonly Manifest[]): Readonly<Record<string, string>> {
  return (manifests.find(({ kind }) => kind === 'ConfigMap') as unknown as ConfigMap).data
}

/** The mistakes that the gateway finds in its variables and its file, except about the files of secrets, which do not exist here. */
export function findWrongSettings(manifests: readonly Manifest[]): readonly string[] {
  const { CONFIG_FILE, TLS_CERT_FILE, TLS_KEY_FILE, ...variables } = variablesOf(manifests)
  if (CONFIG_FILE !== '/etc/sluice/sluice.yaml') throw new Error(`CONFIG_FILE is ${CONFIG_FILE ?? 'unset'}`)
  if ((TLS_CERT_FILE === undefined) !== (TLS_KEY_FILE === undefined)) throw new Error('half a certificate')
  const env = Object.entries(variables).map(([name, value]) => [name, value ?? secrets[name] ?? ''])
  return problemsOf(
    Object.fromEntries(env) as Record<string, string>,
    directoryWith(configFilesOf(manifests)['sluice.yaml'] ?? ''),
  )
}

const secrets: Readonly<Record<string, string>> = {
  ADMIN_TOKEN: '0123456789abcdef',
  REDIS_URL: 'redis://redis:6379',
}
