import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { authorityFile } from '../support/network/certificates.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { runClient } from './client.ts'
import { curl, type CurlReply } from './curl.ts'
import { run } from './run.ts'
import { startNodeServer } from './server.ts'
import { setStage, type Way } from './stage.ts'

// S3rver, which verifies each request's signature over path and headers, with Amazon's client, s3cmd and rclone.

const { direct, ways } = setStage({ start, http2: true, config: 'test/apps/limits/s3.yaml' })
const all = [direct, ...ways]

/** Keys of distinct objects, which a proxy that normalizes or escapes paths would confuse. */
const FILES = [
  'x/b',
  'a b',
  'a+b',
  'a%20b',
  'a%2Fb',
  'a%5Cb',
  'a\\b',
  'per%cent',
  'ü/ñ 漢字',
  "all-_.~!*'();:@&=+$,?#[]",
  'semi;colon=1',
  'dots/...',
  '%2e%2e/up',
]
/** Keys, including ones that cannot be files. */
const KEYS = [...FILES, 'x//b', 'x///b', 'x/b/', '/x/b']

/** Each client has a bucket for each way. */
const bucketOf = (client: string, way: Way): string => `${client}-${all.indexOf(way)}`

test.for(all)("Amazon's client keeps objects apart whose keys look alike, $name", async (way) => {
  const report = await runClient('s3.js', way, [bucketOf('amazon', way), JSON.stringify(KEYS)])
  expect(report).toEqual({
    wrong: [],
    listed: KEYS.toSorted(),
    copies: KEYS,
    large: true,
    range: 'bytes 6000000-6000999/12582913 true',
    signed: ['200 200 true 403'],
    paced: 30,
    isRetried: way !== direct,
    missing: 'NoSuchKey',
    left: [],
  })
})

test.for(all)('s3cmd sends a large file in parts, $name', async (way) => {
  const bucket = `s3://${bucketOf('s3cmd', way)}`
  const s3cmd = s3cmdOf(way)
  await s3cmd('mb', bucket)
  const from = writeFiles()
  await s3cmd('put', '--recursive', `${from}/`, `${bucket}/all//`)
  const back = makeTemporaryDirectory()
  for (const name of [...FILES, 'large.bin']) {
    const file = join(back, String(FILES.indexOf(name)))
    await s3cmd('get', `${bucket}/all//${name}`, file)
    expect(readFileSync(file).equals(readFileSync(join(from, name))), name).toBe(true)
  }
  const list = await s3cmd('ls', '--recursive', bucket)
  expect(list.trim().split('\n')).toHaveLength(FILES.length + 1)
  await s3cmd('rb', '--recursive', '--force', bucket)
})

test.for(all)('rclone copies a folder there and back without a difference, $name', async (way) => {
  const remote = `${rcloneRemote(way)}:${bucketOf('rclone', way)}`
  const from = writeFiles()
  const back = makeTemporaryDirectory()
  await rclone('mkdir', remote)
  await rclone('sync', from, `${remote}/folder`)
  await rclone('check', '--download', from, `${remote}/folder`)
  await rclone('sync', `${remote}/folder`, back)
  expect(filesOf(back)).toEqual(filesOf(from))
  // A range of the object.
  const part = await rclone('cat', '--offset', '8', '--count', '6', `${remote}/folder/a b`)
  expect(part).toBe('of a b')
  await rclone('purge', `${remote}/folder`)
  expect(await rclone('lsf', remote)).toBe('')
})

test.for(all)('curl waits for 100 Continue before it sends an object, $name', async (way) => {
  const bucket = bucketOf('curl', way)
  const signed = ['--user', 'S3RVER:S3RVER', '--aws-sigv4', 'aws:amz:us-east-1:s3']
  const hash = ['--header', 'x-amz-content-sha256: UNSIGNED-PAYLOAD']
  const ask = (path: string, ...args: string[]): Promise<CurlReply> =>
    curl(way, `/${bucket}${path}`, [...signed, ...hash, ...args])
  expect((await ask('/', '--request', 'PUT')).status).toBe(200)
  // Large enough for curl to send `Expect: 100-continue`.
  const file = join(makeTemporaryDirectory(), 'object')
  writeFileSync(file, randomBytes(3_000_000))
  const put = await ask('/x//b', '--upload-file', file)
  expect(put.status).toBe(200)
  expect((await ask('/x//b')).body).toBe((await curl(direct, `/${bucket}/x//b`, [...signed, ...hash])).body)
})

/** Writes small files, and one that is uploaded in several parts. */
function writeFiles(): string {
  const folder = makeTemporaryDirectory()
  for (const name of FILES) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), `content of ${name}`)
  }
  writeFileSync(join(folder, 'large.bin'), randomBytes(11 * 1024 * 1024))
  return folder
}

function filesOf(folder: string): Record<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  const paths = files.map(({ parentPath, name }) => join(parentPath, name)).toSorted()
  return Object.fromEntries(paths.map((path) => [path.slice(folder.length), readFileSync(path, 'base64')]))
}

function s3cmdOf(way: Way): (...args: string[]) => Promise<string> {
  const config = join(makeTemporaryDirectory(), 's3cfg')
  const { host } = new URL(way.origin)
  const lines = [
    '[default]',
    'access_key = S3RVER',
    'secret_key = S3RVER',
    `host_base = ${host}`,
    `host_bucket = ${host}`,
    `use_https = ${way.protocol === 'http' ? 'False' : 'True'}`,
    `ca_certs_file = ${authorityFile}`,
    'multipart_chunk_size_mb = 5',
  ]
  writeFileSync(config, lines.join('\n') + '\n')
  const env = { LC_ALL: 'C.UTF-8' }
  return (...args) => run(['/usr/bin/s3cmd', '--config', config, '--no-progress', ...args], { env })
}

function rcloneRemote(way: Way): string {
  const options = {
    provider: 'Other',
    access_key_id: 'S3RVER',
    secret_access_key: 'S3RVER',
    endpoint: `"${way.origin}"`,
    chunk_size: '5Mi',
    upload_cutoff: '5Mi',
  }
  return `:s3,${Object.entries(options)
    .map(([name, value]) => `${name}=${value}`)
    .join(',')}`
}

function rclone(...args: string[]): Promise<string> {
  return run(['/usr/bin/rclone', '--config', '/dev/null', '--ca-cert', authorityFile, '--quiet', ...args])
}

async function start(): Promise<{ port: number; probe: string }> {
  return { port: await startNodeServer('s3.js', { DIRECTORY: makeTemporaryDirectory() }), probe: '/' }
}
