import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readAdminAddress } from '../../../proxy/config/written/admin-address.ts'
import { loadGatewaySettings } from '../../../proxy/config/settings.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'

const limits = 'limits:\n  - { name: a, match: GET /a, requests: 1, window: 1m }\n'
const token = { ADMIN_TOKEN: 'of-at-least-sixteen-characters' }

/** Forms that only a full parse of the file recognizes. */
const otherForms = [
  '"adminPort": 9393',
  'adminPort:\n  9393',
  'adminPort: ${OTHER_PORT}',
  '{ adminPort: 9393 }',
]

const given: [string, Record<string, string>][] = [
  ['', {}],
  ['', { ADMIN_PORT: '9191' }],
  ['', { ADMIN_PORT: '', ADMIN_HOST: '' }],
  ['', { SLUICE_ADMIN_PORT: '9292', ADMIN_PORT: '9191' }],
  ['', { SLUICE_ADMIN_PORT: 'tcp://10.0.0.1:9090' }],
  ['adminPort: 9393', {}],
  ['adminPort: 9393', { ADMIN_PORT: '9191' }],
  ['adminPort: 9393 # for health\r', {}],
  ['adminPort: 0x2383', {}],
  ['adminPort : 9393', {}],
  ['adminHost: 0.0.0.0', token],
  ['adminHost: localhost', {}],
  ['adminHost: ::1', {}],
  ["adminHost: '::1'", {}],
  ['adminHost: "127.0.0.2" # quoted', {}],
  ['# adminPort: 9393', {}],
  ['   # adminHost: 10.0.0.1', {}],
  ['adminHost: 127.0.0.2\nadminPort: 9393', {}],
]

test.each(given)('the file %j and the environment %j give the address of the settings', (line, env) => {
  const folder = folderWith(`${line}\n${limits}`)
  const { settings } = loadGatewaySettings(env, folder)
  expect(readAdminAddress(env, folder)).toEqual({
    host: settings.adminHost,
    port: settings.adminPort,
  })
})

test.each(otherForms)(
  'the file %j has to be read completely, unless the environment has the address',
  (line) => {
    const folder = folderWith(`${line}\n`)
    expect(readAdminAddress({}, folder)).toBeUndefined()
    const env = { ADMIN_HOST: '127.0.0.3', ADMIN_PORT: '9191' }
    expect(readAdminAddress(env, folder)).toEqual({ host: '127.0.0.3', port: 9191 })
  },
)

test('a file that is named is read', () => {
  const folder = folderWith('', 'adminPort: 9393\n')
  for (const name of ['CONFIG_FILE', 'SLUICE_CONFIG_FILE'])
    expect(readAdminAddress({ [name]: 'other.yaml' }, folder)).toEqual({
      host: '127.0.0.1',
      port: 9393,
    })
})

test.each([
  ['limits: [', 9090],
  ['adminPort: 9393\nlimits:\n  - name: a', 9393],
])('the admin address before the mistake in %j is used for the running gateway', (text, port) => {
  expect(readAdminAddress({}, folderWith(text))).toEqual({ host: '127.0.0.1', port })
})

function folderWith(text: string, other = ''): string {
  const folder = makeTemporaryDirectory()
  writeFileSync(join(folder, 'sluice.yaml'), text)
  writeFileSync(join(folder, 'other.yaml'), other)
  return folder
}
