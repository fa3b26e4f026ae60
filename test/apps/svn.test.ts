import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { authorityFile } from '../support/network/certificates.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { startApache } from './apache.ts'
import { run } from './run.ts'
import { setStage } from './stage.ts'

// Subversion behind Apache, and svn: DeltaV, with a request for each file, and names that need escapes.

const FILES = 60
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

const { direct, ways } = setStage({ start, http2: false })

test.for([direct, ...ways])('commits, copies, locks and checkouts, $name', async (way) => {
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
  // On the server, by COPY with a Destination.
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
  // It compares the certificate with names only, not with addresses.
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
  const root = makeTemporaryDirectory()
  const repositories = join(root, 'repositories')
  mkdirSync(repositories)
  for (const name of ['direct', ...ways.keys()])
    execFileSync('/usr/bin/svnadmin', ['create', join(repositories, String(name))])
  const users = join(root, 'users')
  writeFileSync(users, 'test:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\n')
  const port = await startApache(
    root,
    ['dav', 'dav_svn', 'headers', 'authn_core', 'authn_file', 'auth_basic', 'authz_user'],
    [
      // As behind anything that ends TLS, `Destination` has to say http.
      'RequestHeader edit Destination ^https: http: early',
      '<Location /svn>',
      '  DAV svn',
      `  SVNParentPath ${repositories}`,
      '  SVNAdvertiseV2Protocol On',
      '  AuthType Basic',
      '  AuthName test',
      `  AuthUserFile ${users}`,
      '  <LimitExcept GET PROPFIND OPTIONS REPORT>',
      '    Require valid-user',
      '  </LimitExcept>',
      '</Location>',
    ],
  )
  return { port, probe: '/svn/direct/' }
}
