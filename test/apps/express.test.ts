import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { createComparison } from './compare.ts'
import { curl } from './curl.ts'
import { startNodeServer } from './server.ts'
import { setStage } from './stage.ts'

// Express and curl: each response must equal Express's direct response, apart from what the gateway adds.

const files = makeTemporaryDirectory()
const upload = join(files, 'upload.bin')

const { direct, ways } = setStage({ start, http2: true })

const compare = createComparison(direct, [
  ['/json', '--json', `{"text": "${'ü'.repeat(500)}"}`],
  ['/json', '--json', '{broken'],
  ['/form', '--data', 'a[b]=1&a[c]=%E2%82%AC'],
  ['/hash', '--data-binary', `@${upload}`],
  ['/hash', '--data-binary', `@${upload}`, '--header', 'Transfer-Encoding: chunked'],
  ['/hash', '--upload-file', upload, '--header', 'Expect: 100-continue'],
  ['/hash', '--request', 'DELETE'],
  ['/hash', '--request', 'PATCH', '--data', 'x'],
  ['/cookies', '--cookie', 'session=abc; other=1'],
  ['/files/page.html'],
  ['/files/page.html', '--head'],
  ['/files/page.html', '--header', 'If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT'],
  ['/files/large.bin'],
  ['/files/large.bin', '--range', '1000000-1999999'],
  ['/files/large.bin', '--range', '99999999-'],
  ['/files', '--header', 'Accept: text/html'],
  ['/gzip'],
  ['/gzip', '--compressed'],
  ['/stream'],
  ['/stream', '--head'],
  ['/params/a%20b%C3%BC?q=1&q=2&r[x]=3'],
  ['/empty'],
  ['/broken'],
  ['/not-there'],
  ['/', '--request', 'OPTIONS'],
])

test.for(ways)('Express gives every response, $name', compare)

test.for(ways)('Express sees who asks, and how, $name', async (way) => {
  const reply = await curl(way, '/')
  expect(JSON.parse(reply.body)).toEqual({
    protocol: way.origin.split(':')[0],
    host: new URL(way.origin).host,
    address: '127.0.0.1',
  })
  // Express builds a URL from scheme and host, which must lead back to the gateway.
  const redirect = await curl(way, '/redirect')
  expect(redirect).toMatchObject({ status: 303, headers: { location: ['ORIGIN/'] } })
  expect(await curl(way, '/redirect', ['--location'])).toMatchObject({ status: 200 })
})

async function start(): Promise<{ port: number; probe: string }> {
  mkdirSync(join(files, 'public'))
  writeFileSync(join(files, 'public/page.html'), '<p>Hello</p>')
  writeFileSync(join(files, 'public/large.bin'), randomBytes(8 * 1024 * 1024))
  writeFileSync(upload, randomBytes(8 * 1024 * 1024))
  return { port: await startNodeServer('express.js', { FILES: join(files, 'public') }), probe: '/' }
}
