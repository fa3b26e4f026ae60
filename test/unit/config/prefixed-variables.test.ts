import { globSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadGatewaySettings } from '../../../proxy/config/settings.ts'
import { problemsOf } from '../../support/gateway/settings.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'

const settingsOf = (env: Record<string, string>, cwd = makeTemporaryDirectory()) =>
  loadGatewaySettings(env, cwd).settings

test('a variable with the prefix sets the same setting, and takes precedence over the one without', () => {
  expect(settingsOf({ SLUICE_PORT: '7777' }).port).toBe(7777)
  expect(settingsOf({ SLUICE_PORT: '7777', PORT: '1111' }).port).toBe(7777)
  expect(settingsOf({ SLUICE_PORT: '', PORT: '1111' }).port).toBe(1111)
  expect(settingsOf({ SLUICE_TRUSTED_PROXIES: '10.0.0.0/8' }).trustedProxies).toEqual(['10.0.0.0/8'])
})

test('a prefixed variable can name the file, and secrets in files', () => {
  const cwd = makeTemporaryDirectory()
  writeFileSync(join(cwd, 'mine.yaml'), 'port: 7778\n')
  writeFileSync(join(cwd, 'token'), 'a-token-of-16-or-more')
  const env = {
    SLUICE_CONFIG_FILE: 'mine.yaml',
    SLUICE_ADMIN_TOKEN_FILE: 'token',
    ADMIN_TOKEN: 'another-token-of-16',
  }
  expect(settingsOf(env, cwd)).toMatchObject({ port: 7778, adminToken: 'a-token-of-16-or-more' })
})

test.each([
  [{ SLUICE_PORTT: '1' }, 'SLUICE_PORTT: unknown setting, did you mean SLUICE_PORT?'],
  [{ SLUICE_SOMETHING_ELSE: '1' }, 'SLUICE_SOMETHING_ELSE: unknown setting'],
  [{ SLUICE_PORT: 'http' }, 'SLUICE_PORT: got "http", needs'],
])('%j: %s', (env, start) => {
  const [problem = '', ...others] = problemsOf(env, makeTemporaryDirectory())
  expect(others).toEqual([])
  expect(problem.slice(0, start.length)).toBe(start)
})

test('every name with the prefix that the docs and compose files have is known', () => {
  const root = join(import.meta.dirname, '../../..')
  const files = globSync(
    ['*.{md,yml,yaml}', 'docs/**/*.md', 'deploy/**/*', 'ops/**/*', 'presets/*', '.github/**/*.yml'],
    { cwd: root },
  ).filter((name) => statSync(join(root, name)).isFile() && name !== 'CHANGELOG.md')
  const names = files.flatMap(
    (name) => readFileSync(join(root, name), 'utf8').match(/\bSLUICE_[A-Z]\w*/g) ?? [],
  )
  expect(names).toContain('SLUICE_GATEWAY_IMAGE')
  const unknown = [...new Set(names)].filter((name) =>
    // The value does not matter, because only the name is tested.
    problemsOf({ [name]: '1234' }, makeTemporaryDirectory()).some((text) => text.includes('no setting')),
  )
  expect(unknown).toEqual([])
})

test('SLUICE_CONFIG with the path of a file gets a hint at CONFIG_FILE', () => {
  const [problem] = problemsOf({ SLUICE_CONFIG: './sluice.yaml' }, makeTemporaryDirectory())
  expect(problem).toBe('SLUICE_CONFIG: unknown setting, did you mean SLUICE_CONFIG_FILE?')
})

test('variables that Kubernetes sets for a service of that name are not settings', () => {
  const env = {
    SLUICE_SERVICE_HOST: '10.96.0.7',
    SLUICE_SERVICE_PORT: '80',
    SLUICE_SERVICE_PORT_HTTP: '80',
    SLUICE_PORT: 'tcp://10.96.0.7:80',
    SLUICE_PORT_80_TCP: 'tcp://10.96.0.7:80',
    SLUICE_PORT_80_TCP_PROTO: 'tcp',
    SLUICE_PORT_80_TCP_PORT: '80',
    SLUICE_PORT_80_TCP_ADDR: '10.96.0.7',
    SLUICE_ADMIN_SERVICE_HOST: '10.96.0.8',
    SLUICE_ADMIN_PORT: 'tcp://10.96.0.8:9090',
  }
  expect(settingsOf(env)).toMatchObject({ port: settingsOf({}).port, adminPort: settingsOf({}).adminPort })
})
