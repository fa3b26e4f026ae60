import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readInThread } from '../../../proxy/app/reload/read-in-thread.ts'
import { readPieces, writePieces } from '../../../proxy/app/reload/settings-pieces.ts'
import { loadGatewaySettings } from '../../../proxy/config/settings.ts'
import { doAtOnce } from '../../../shared/steps.ts'
import { directoryWith } from '../../support/gateway/settings.ts'

// A thread reads settings again and returns them in pieces, which workers get too. The result must equal the settings that this thread
// reads.

const pages = Array.from(
  { length: 120 },
  (_, at) => `  - name: r${at}
    match: [GET /r${at}/:id, POST /r${at}/:id]
    key: path:id
    hosts: [h${at}.example.com, '*.example.org']
    requests: ${at + 1}
    window: 1m
    allowList: [{ ip: 10.0.0.${at} }]
    overrides: [{ clients: [{ ip: 192.0.2.${at} }], requests: 7 }]
    refusal: { body: 'no ${at}', contentType: text/plain, html: page.html }
`,
).join('')
const all = `refusal: { status: 503, body: { no: 1 } }
cors: { origins: ['https://app.example.com'] }
denyList: [${Array.from({ length: 130 }, (_, at) => `{ ip: 198.51.100.${at} }`).join(', ')}]
allowList: [{ ip: [203.0.113.7] }]
routes: [${Array.from({ length: 70 }, (_, at) => `{ name: s${at}, paths: [/s${at}/*], upstream: 'http://127.0.0.1:9' }`).join(', ')}]
webhooks: [{ url: 'https://hooks.example.com/', events: [ban] }]
limits:
${pages}`

function folderWith(yaml: string): string {
  const cwd = directoryWith(yaml)
  writeFileSync(join(cwd, 'page.html'), '<p>no</p>')
  return cwd
}

const env = {
  RATE_LIMITING_DISABLED: 'no',
  WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 1).toString('base64')}`,
  UPSTREAM_URL: 'http://127.0.0.1:9/base',
}

test.each([
  ['a table with everything', all],
  ['the built-in table', '# nothing\n'],
  ['no limits', 'limits: []\n'],
])('%s is the same in pieces, and read in a thread', async (_what, yaml) => {
  const cwd = folderWith(yaml)
  const here = loadGatewaySettings(env, cwd)
  expect(doAtOnce(readPieces(doAtOnce(writePieces(here.settings))))).toEqual(here.settings)
  expect(await readInThread({ env, cwd })).toEqual(here)
})

test('a thread reports the same mistakes', async () => {
  const cwd = folderWith('limits: [{ name: a }]\nunknown: 1\n')
  const mistakes = (): readonly string[] => {
    try {
      loadGatewaySettings({ PORT: 'x' }, cwd)
    } catch (error) {
      return (error as { problems: readonly string[] }).problems
    }
    return []
  }
  expect(mistakes()).not.toEqual([])
  expect(await readInThread({ env: { PORT: 'x' }, cwd })).toEqual({ mistakes: mistakes() })
})

test('a thread that takes too long, or too much memory, is ended', async () => {
  const cwd = folderWith(all)
  await expect(readInThread({ env, cwd }, { maxMs: 1 })).rejects.toThrow('took longer than')
  await expect(readInThread({ env, cwd }, { maxHeapMb: 8 })).rejects.toThrow(/memory/)
})
