import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { authorityFile } from '../support/network/certificates.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { runClient } from './client.ts'
import { run } from './run.ts'
import { setStage, type Way } from './stage.ts'
import { startVerdaccio } from './verdaccio.ts'

// Verdaccio and npm: login, publication, installation.

const npmProgram = join(import.meta.dirname, 'node_modules/npm/bin/npm-cli.js')

const { direct, ways } = setStage({ start, http2: false })

test.for([direct, ...ways])('login, publish, install, $name', async (way) => {
  const name = way === direct ? 'direct' : `way-${ways.indexOf(way)}`
  const home = makeTemporaryDirectory()
  const npm = (cwd: string, ...args: string[]): Promise<string> =>
    run([process.execPath, npmProgram, ...args], { cwd, env: npmEnvironment(home, way) })

  const login = (await runClient('npm-login.js', way, [name])) as { token: string }
  expect(login).toEqual({ token: expect.any(String) as string, again: true, refused: 401 })
  writeFileSync(join(home, '.npmrc'), `//${new URL(way.origin).host}/:_authToken=${login.token}\n`)
  expect((await npm(home, 'whoami')).trim()).toBe(name)

  const content = randomBytes(6 * 1024 * 1024)
  const source = join(home, 'source')
  mkdirSync(source)
  writeFileSync(join(source, 'package.json'), JSON.stringify({ name: `@test/${name}`, version: '1.2.3' }))
  writeFileSync(join(source, 'content.bin'), content)
  await npm(source, 'publish')
  // A version can be published only once.
  await expect(npm(source, 'publish')).rejects.toThrow(/previously published|E409|already present/)

  const project = join(home, 'project')
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), '{"name": "project", "version": "0.0.0"}')
  await npm(project, 'install', `@test/${name}@^1.0.0`)
  expect(readFileSync(join(project, `node_modules/@test/${name}/content.bin`)).equals(content)).toBe(true)
  // Verdaccio builds the archive's URL from the scheme and host that it receives.
  const lock = readFileSync(join(project, 'package-lock.json'), 'utf8')
  expect(lock).toContain(`"resolved": "${way.origin}/@test/${name}/-/${name}-1.2.3.tgz"`)
})

/** No configuration of the developer, and no requests to another registry. */
function npmEnvironment(home: string, way: Way): Record<string, string> {
  return {
    HOME: home,
    npm_config_registry: `${way.origin}/`,
    npm_config_cafile: authorityFile,
    npm_config_userconfig: join(home, '.npmrc'),
    npm_config_globalconfig: join(home, 'global-npmrc'),
    npm_config_cache: join(home, 'cache'),
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_update_notifier: 'false',
    npm_config_fetch_retries: '0',
  }
}

async function start(): Promise<{ port: number; probe: string }> {
  return { port: await startVerdaccio(), probe: '/-/ping' }
}
