import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readClient } from '../../../proxy/cli/operate/client-argument.ts'
import { loadGatewaySettings } from '../../../proxy/config/settings.ts'
import { createCachedFile } from '../../../proxy/names/cached-file.ts'
import { loadKeySet } from '../../../proxy/limits/keys/tokens/load-key-set.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'

// Windows editors and shells begin a UTF-8 file with a byte order mark, which is not part of its text.

const mark = '\u{feff}'
const secret = 'a secret of thirty-two bytes, at least'
const keys = '{"keys":[{"kty":"oct","k":"AA"}]}'

function written(text: string): { readonly folder: string; readonly path: string } {
  const folder = makeTemporaryDirectory()
  const path = join(folder, 'file')
  writeFileSync(path, text)
  return { folder, path }
}

const readers: readonly (readonly [string, string, (path: string, folder: string) => unknown])[] = [
  ['secretFile', secret, (path) => loadKeySet({ kind: 'secret', path })],
  ['jwksFile', keys, (path) => loadKeySet({ kind: 'file', path })],
  ['@FILE on the command line', 'value', (path) => readClient([`@${path}`])],
  ['the hosts file', '127.0.0.1 a', (path) => createCachedFile(path, (text) => text)()],
  [
    'ADMIN_TOKEN_FILE',
    'a-token-of-16-or-more',
    (path, folder) => loadGatewaySettings({ ADMIN_TOKEN_FILE: path }, folder).settings.adminToken,
  ],
  [
    'sluice.yaml',
    'port: 8081',
    (path, folder) => loadGatewaySettings({ CONFIG_FILE: path }, folder).settings.port,
  ],
]

test.each(readers)('%s is read without its byte order mark', async (_, text, read) => {
  const [plain, marked] = [written(text), written(mark + text)]
  expect(await read(marked.path, marked.folder)).toEqual(await read(plain.path, plain.folder))
})

test('refusals are sent without a byte order mark', () => {
  const { folder } = written('')
  writeFileSync(join(folder, 'body.txt'), `${mark}slow down`)
  writeFileSync(join(folder, 'page.html'), `${mark}<p>slow down`)
  writeFileSync(join(folder, 'sluice.yaml'), 'refusal: { bodyFile: body.txt, html: page.html }\nlimits: []\n')
  const { everyRule } = loadGatewaySettings({}, folder).settings.refusals
  expect([everyRule?.body.toString(), everyRule?.html?.toString()]).toEqual(['slow down', '<p>slow down'])
})
