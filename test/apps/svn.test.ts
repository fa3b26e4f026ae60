import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { authorityFile } from '../support/network/certificates.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { startApache } from './apache.ts'
import { countRefusals, letIn, letInWhenRefused } from './refusals.ts'
import { run } from './run.ts'
import { setStage, type Way } from './stage.ts'

// Subversion behind Apache, and svn: DeltaV, with a request for each file, and names that need escapes. svn does not speak HTTP/2, so
// rclone does: each file that it writes is a commit.

const FILES = 60
/** Twice this number exceeds the quota of `/tight`. */
const HALF = 40
/** Names that a client escapes in its own way, or that a proxy may change. */
const NAMES = [
  'a b.txt',
  'ü.txt',
  'back\\slash.txt',
  'per%20cent.txt',
  'plus+and&.txt',
  'semi;colon.txt',
  'hash#.txt',
]

const { direct, ways } = setStage({ start, http2: 'one of several', config: 'test/apps/limits/svn.yaml' })
const waysOfSvn = ways.filter(({ protocol }) => protocol !== 'http2')
const waysOfRclone = ways.filter(({ protocol }) => protocol === 'http2')
const root = makeTemporaryDirectory()

test.for([direct, ...waysOfSvn])('commits, copies, locks and checkouts, $name', async (way) => {
  const url = `${way.origin}/svn/${way === direct ? 'direct' : ways.indexOf(way)}`
  const work = join(makeTemporaryDirectory(), 'work')
  await svn(['checkout', '--quiet', url, work])
  const texts = new Map([
    ...NAMES.map((name) => [name, `${name}\n`] as const),
    ...Array.from({ length: FILES }, (_, i) => [`${i}.bin`, randomBytes(20_000).toString('hex')] as const),
    ['large.bin', randomBytes(3_000_000).toString('hex')] as const,
  ])
  mkdirSync(join(work, 'trunk'))
  for (const [name, text] of texts) writeFileSync(join(work, 'trunk', name), text)
  await svn(['add', '--quiet', '--force', '.'], work)
  await svn(['commit', '--quiet', '--message', 'all files', '.'], work)
  // A copy on the server, by COPY with a Destination.
  await svn(['copy', '--quiet', '--message', 'branch', `${url}/trunk`, `${url}/branch`])
  await svn(['move', '--quiet', '--message', 'rename', `${url}/branch/0.bin`, `${url}/branch/renamed.bin`])
  await svn(['update', '--quiet'], work)
  const locked = join(work, 'trunk', '1.bin')
  await svn(['lock', '--quiet', locked], work)
  writeFileSync(locked, 'changed while it was locked\n')
  await svn(['propset', '--quiet', 'svn:eol-style', 'LF', locked], work)
  await svn(['commit', '--quiet', '--message', 'change', '.'], work)

  const clean = join(makeTemporaryDirectory(), 'clean')
  await svn(['checkout', '--quiet', url, clean])
  expect(readdirSync(clean).toSorted()).toEqual(['.svn', 'branch', 'trunk'])
  for (const [name, text] of texts) {
    const expected = name === '1.bin' ? 'changed while it was locked\n' : text
    expect(readFileSync(join(clean, 'trunk', name), 'utf8') === expected, name).toBe(true)
  }
  expect(readFileSync(join(clean, 'branch/renamed.bin'), 'utf8')).toBe(texts.get('0.bin'))
  const log = await svn(['log', '--quiet', url])
  expect(log.match(/^r\d+/gm)).toEqual(['r4', 'r3', 'r2', 'r1'])
  expect((await svn(['blame', `${url}/trunk/1.bin`])).trim()).toMatch(/^4 +\S+ changed while it was locked$/)
})

test.for(waysOfSvn)('a refused commit changes nothing, and a later one is whole, $name', async (way) => {
  const url = `${way.origin}/tight/${ways.indexOf(way)}`
  const repository = join(root, 'tight', String(ways.indexOf(way)))
  await letIn(way, 'tight')
  const work = join(makeTemporaryDirectory(), 'work')
  await svn(['checkout', '--quiet', url, work])
  const texts = new Map(Array.from({ length: 2 * HALF }, (_, i) => [`${i}.txt`, `text ${i}\n`] as const))
  const addHalf = async (from: number): Promise<void> => {
    for (const [name, text] of [...texts].slice(from, from + HALF)) writeFileSync(join(work, name), text)
    await svn(['add', '--quiet', '--force', '.'], work)
  }
  const commit = (): Promise<string> => svn(['commit', '--quiet', '--message', 'half', '.'], work)
  await addHalf(0)
  await commit()
  await addHalf(HALF)
  await expect(commit()).rejects.toThrow('429')
  expect(await countRefusals(way, 'tight')).toBeGreaterThan(0)
  expect(execFileSync('/usr/bin/svnlook', ['youngest', repository], { encoding: 'utf8' })).toBe('1\n')

  await letIn(way, 'tight')
  await commit()
  const clean = join(makeTemporaryDirectory(), 'clean')
  await expect(svn(['checkout', '--quiet', url, clean])).rejects.toThrow('429')
  // svn resumes where it was refused.
  await letIn(way, 'tight')
  await svn(['cleanup'], clean)
  await svn(['update', '--quiet'], clean)
  expect(textsOf(clean)).toEqual(texts)
  execFileSync('/usr/bin/svnadmin', ['verify', '--quiet', repository])
})

test.for(waysOfRclone)('rclone goes on after refusals, and svn finds all files, $name', async (way) => {
  const name = String(ways.indexOf(way))
  const from = makeTemporaryDirectory()
  const texts = new Map([
    ...NAMES.map((file) => [file, `${file}\n`] as const),
    ...Array.from({ length: FILES }, (_, i) => [`${i}.txt`, `text ${i}\n`] as const),
    ['large.bin', randomBytes(1_000_000).toString('hex')] as const,
  ])
  for (const [file, text] of texts) writeFileSync(join(from, file), text)
  await letIn(way, 'tight')
  const copied = rclone(way, `/tight/${name}`, ['copy', from, ':webdav:folder'])
  const { isRefused } = await letInWhenRefused(way, 'tight', copied)
  expect(isRefused).toBe(true)
  const checkout = join(makeTemporaryDirectory(), 'checkout')
  await svn(['checkout', '--quiet', `${direct.origin}/tight/${name}/folder`, checkout])
  expect(textsOf(checkout)).toEqual(texts)
  // COPY and MOVE, with a Destination.
  await letIn(way, 'tight')
  await rclone(way, `/tight/${name}`, ['copyto', ':webdav:folder/0.txt', ':webdav:folder/copy ü.txt'])
  await rclone(way, `/tight/${name}`, ['moveto', ':webdav:folder/1.txt', ':webdav:folder/moved ü.txt'])
  await svn(['update', '--quiet'], checkout)
  const { '0.txt': first, '1.txt': second, ...others } = Object.fromEntries(texts)
  expect(Object.fromEntries(textsOf(checkout))).toEqual({
    ...others,
    '0.txt': first,
    'copy ü.txt': first,
    'moved ü.txt': second,
  })
})

function textsOf(folder: string): Map<string, string> {
  const names = readdirSync(folder).filter((name) => name !== '.svn')
  return new Map(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}

/** Runs rclone with a WebDAV remote, which is the path below the way's origin. */
function rclone(way: Way, path: string, args: readonly string[]): Promise<string> {
  // By default rclone gives up after ten refusals of one request.
  const own = ['--config', '/dev/null', '--ca-cert', authorityFile, '--low-level-retries', '1000']
  const remote = ['--webdav-url', `${way.origin}${path}`, '--webdav-vendor', 'other']
  return run(['/usr/bin/rclone', ...args, ...own, ...remote])
}

function svn(args: readonly string[], cwd?: string): Promise<string> {
  const config = [
    '--config-dir',
    join(work, 'config'),
    '--non-interactive',
    '--username',
    'test',
    '--password',
    'test',
  ]
  // svn compares the certificate with names only, not with addresses.
  const trust = [
    '--trust-server-cert-failures',
    'cn-mismatch',
    '--config-option',
    `servers:global:ssl-authority-files=${authorityFile}`,
  ]
  return run(['/usr/bin/svn', ...args, ...config, ...trust], {
    env: { LC_ALL: 'C.UTF-8' },
    ...(cwd !== undefined && { cwd }),
  })
}

const work = makeTemporaryDirectory()

async function start(): Promise<{ port: number; probe: string }> {
  for (const folder of ['svn', 'tight']) {
    mkdirSync(join(root, folder))
    for (const name of ['direct', ...ways.keys()])
      execFileSync('/usr/bin/svnadmin', ['create', join(root, folder, String(name))])
  }
  const users = join(root, 'users')
  writeFileSync(users, 'test:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\n')
  const port = await startApache(
    root,
    ['dav', 'dav_svn', 'headers', 'authn_core', 'authn_file', 'auth_basic', 'authz_user'],
    [
      // As behind any proxy that terminates TLS, `Destination` has to say http.
      'RequestHeader edit Destination ^https: http: early',
      '<Location /svn>',
      '  DAV svn',
      `  SVNParentPath ${root}/svn`,
      '  SVNAdvertiseV2Protocol On',
      '  AuthType Basic',
      '  AuthName test',
      `  AuthUserFile ${users}`,
      '  <LimitExcept GET PROPFIND OPTIONS REPORT>',
      '    Require valid-user',
      '  </LimitExcept>',
      '</Location>',
      '<Location /tight>',
      '  DAV svn',
      `  SVNParentPath ${root}/tight`,
      // A PUT by a client that knows nothing of versions is a commit.
      '  SVNAutoversioning On',
      '</Location>',
    ],
  )
  return { port, probe: '/svn/direct/' }
}
