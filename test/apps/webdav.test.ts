import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { startApache } from './apache.ts'
import { run } from './run.ts'
import { setStage, trustingEnvironment, type Way } from './stage.ts'

// Apache's WebDAV, and the test suite litmus as its client.

const { direct, ways } = setStage({ start, http2: false })

const lastSuite = '-> running `http'

let directly: Promise<string> | undefined

test.for(ways)('litmus finds no difference, $name', async (way) => {
  const expected = await (directly ??= litmus(direct))
  expect(expected.match(/ 0 failed/g)).toHaveLength(5)
  const report = await litmus(way)
  // Over TLS litmus leaves out the test of the last suite.
  const compared = way.protocol === 'http' ? report : report.split(lastSuite)[0]
  expect(compared).toBe(way.protocol === 'http' ? expected : expected.split(lastSuite)[0])
})

/** The report, with a line for each test of the five suites. */
async function litmus(way: Way): Promise<string> {
  const name = way === direct ? 'direct' : String(ways.indexOf(way))
  const output = await run(['litmus', `${way.origin}/${name}/`], {
    env: trustingEnvironment,
    // litmus writes its traces there.
    cwd: makeTemporaryDirectory(),
  })
  return output.replaceAll(`${way.origin}/${name}/`, 'ORIGIN/')
}

async function start(): Promise<{ port: number; probe: string }> {
  const root = makeTemporaryDirectory()
  const documents = join(root, 'documents')
  for (const name of ['direct', ...ways.keys()]) mkdirSync(join(documents, String(name)), { recursive: true })
  const modules = ['dav', 'dav_fs', 'dir', 'autoindex', 'headers']
  const port = await startApache(root, modules, [
    `DocumentRoot ${documents}`,
    `DavLockDB ${root}/locks`,
    // Apache moves nothing to another scheme. As behind any proxy that terminates TLS, `Destination` has to say http.
    'RequestHeader edit Destination ^https: http: early',
    `<Directory ${documents}>`,
    '  Dav On',
    '  Options +Indexes',
    '  Require all granted',
    '</Directory>',
  ])
  return { port, probe: '/' }
}
