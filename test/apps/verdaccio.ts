import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { run } from './run.ts'
import { startServer } from './server.ts'

/**
 * Starts Verdaccio, an npm registry, without packages.
 *
 * @param uplink the registry to ask for packages that were not published here; none if undefined
 * @returns its port on 127.0.0.1
 */
export function startVerdaccio(uplink?: string): Promise<number> {
  const root = makeTemporaryDirectory()
  const config = join(root, 'verdaccio.yaml')
  const settings = {
    storage: `${root}/storage`,
    auth: { htpasswd: { file: `${root}/htpasswd`, algorithm: 'sha1' } },
    ...(uplink !== undefined && { uplinks: { beyond: { url: uplink, cache: false, timeout: '90s' } } }),
    packages: {
      // Never fetched from the uplink: another author may have a package with this name there.
      sluice: { access: '$all', publish: '$authenticated' },
      '**': { access: '$all', publish: '$authenticated', ...(uplink !== undefined && { proxy: 'beyond' }) },
    },
    server: { trustProxy: 'loopback' },
    max_body_size: '50mb',
    log: { type: 'stdout', format: 'json', level: 'warn' },
    web: { enable: false },
  }
  // JSON is also YAML.
  writeFileSync(config, JSON.stringify(settings))
  const program = join(import.meta.dirname, 'node_modules/verdaccio/bin/verdaccio')
  return startServer(
    process.execPath,
    (free) => [program, '--config', config, '--listen', `127.0.0.1:${free}`],
    { ready: /http address/, env: { HOME: root, ...networkSettings() }, cwd: root },
  )
}

/**
 * Starts a registry with the package of this archive and all packages of npm's own registry.
 *
 * @param env variables with which npm finds its own registry
 * @returns its address
 */
export async function startRegistryWith(tarball: string, env: Record<string, string>): Promise<string> {
  const uplink = (await run(['npm', 'config', 'get', 'registry'], { env })).trim()
  const port = await startVerdaccio(uplink)
  const origin = `http://127.0.0.1:${port}`
  const user = { name: 'publisher', password: 'of this test' }
  const created = await fetch(`${origin}/-/user/org.couchdb.user:${user.name}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(user),
  })
  const { token } = (await created.json()) as { token: string }
  const home = makeTemporaryDirectory()
  writeFileSync(join(home, '.npmrc'), `//127.0.0.1:${port}/:_authToken=${token}\n`)
  const npmEnv = { ...env, npm_config_registry: `${origin}/`, npm_config_userconfig: join(home, '.npmrc') }
  await run(['npm', 'publish', tarball], { cwd: home, env: npmEnv })
  return `${origin}/`
}

/** How this machine reaches other hosts: part of the environment, not of the applications' own settings. */
function networkSettings(): Record<string, string> {
  const names = ['http_proxy', 'https_proxy', 'no_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY']
  return Object.fromEntries(
    [...names, 'NODE_EXTRA_CA_CERTS'].flatMap((name) => {
      const value = process.env[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )
}
