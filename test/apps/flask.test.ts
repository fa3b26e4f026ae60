import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { createComparison } from './compare.ts'
import { curl } from './curl.ts'
import { startServer } from './server.ts'
import { setStage } from './stage.ts'

// Flask on gunicorn, and curl.

const files = makeTemporaryDirectory()
const upload = join(files, 'upload.bin')

const { direct, ways } = setStage({ start, http2: true })

const compare = createComparison(direct, [
  ['/profile'],
  ['/upload', '--form', `file=@${upload};type=image/png`, '--form', 'file=two', '--form', 'name=a b'],
  ['/raw', '--data-binary', `@${upload}`],
  ['/raw', '--upload-file', upload, '--header', 'Transfer-Encoding: chunked'],
  ['/raw', '--upload-file', upload, '--header', 'Expect: 100-continue'],
  ['/stream'],
  ['/stream', '--head'],
  ['/query?a=1&a=2&b=%C3%BC&c=+%20'],
  ['/headers', '--header', 'X-Own-Header: a, b'],
  ['/refused', '--user', 'me:secret'],
  ['/query', '--request', 'POST', '--data', ''],
  ['/not/there'],
])

test.for(ways)('Flask gives every response, $name', compare)

test.for(ways)('Flask keeps a session, $name', async (way) => {
  const jar = join(files, `${ways.indexOf(way)}.cookies`)
  const cookies = ['--cookie', jar, '--cookie-jar', jar]
  const signedIn = await curl(way, '/login', ['--data', 'user=me', ...cookies])
  expect(signedIn).toMatchObject({ status: 302, headers: { location: ['ORIGIN/profile'] } })
  expect(await curl(way, '/profile', cookies)).toMatchObject({ status: 200, body: '{"user":"me"}\n' })
})

test.for(ways)('Flask sees who asks, and how, $name', async (way) => {
  const protocol = way.origin.split(':')[0]
  const { body } = await curl(way, '/')
  expect(JSON.parse(body)).toEqual({ protocol, host: new URL(way.origin).host, address: '127.0.0.1' })
})

async function start(): Promise<{ port: number; probe: string }> {
  writeFileSync(upload, randomBytes(3 * 1024 * 1024))
  const server = (port: number): string[] => [
    ...['--bind', `127.0.0.1:${port}`],
    ...['--worker-class', 'gthread', '--workers', '2', '--threads', '4'],
    ...['--chdir', join(import.meta.dirname, 'servers')],
    'flask_app:app',
  ]
  const env = { PYTHONDONTWRITEBYTECODE: '1' }
  const port = await startServer('/usr/bin/gunicorn', server, { env, ready: /Booting worker/ })
  return { port, probe: '/' }
}
