import { randomBytes } from 'node:crypto'
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { startApache } from './apache.ts'
import { run } from './run.ts'
import { setStage, trustingEnvironment, type Way } from './stage.ts'

// `git http-backend` behind Apache, and git.

const FILES = 10
const FILE_BYTES = 5 * 1024 * 1024
const SMALL_FILES = 10

/** No configuration of the developer, and no prompts. */
const environment = {
  ...trustingEnvironment,
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_TERMINAL_PROMPT: '0',
  GIT_AUTHOR_NAME: 'Test',
  GIT_AUTHOR_EMAIL: 'test@example.com',
  GIT_COMMITTER_NAME: 'Test',
  GIT_COMMITTER_EMAIL: 'test@example.com',
}

/** Each file has 64 KB when compressed, and arrives in a few chunks. */
const smallFiles = Array.from({ length: SMALL_FILES }, () => randomBytes(64 * 1024).toString('hex'))
const work = makeTemporaryDirectory()
let head = ''

const { direct, ways } = setStage({ start: startGitServer, http2: true })
const places = ['direct', ...ways.map(({ name }) => name)].map((name, index) => ({
  way: ways[index - 1] ?? direct,
  name,
  empty: `empty-${index}.git`,
}))

test.for(places)('git clones 50 MB, $name', async ({ way }) => {
  const clone = join(makeTemporaryDirectory(), 'clone')
  await git(way, ['clone', '-q', url(way), clone])
  // git itself has compared every object with its checksum, and the commit's name is a checksum over all of them.
  expect(await git(way, ['-C', clone, 'rev-parse', 'HEAD'])).toBe(head)
  expect(await git(way, ['-C', clone, 'status', '--porcelain'])).toBe('')
})

test.for(places)('git pushes 50 MB, $name', async ({ way, empty }) => {
  const target = url(way, empty)
  await git(way, ['-C', join(work, 'source'), 'push', '-q', target, 'HEAD:refs/heads/main'])
  expect(await git(way, ['ls-remote', target, 'refs/heads/main'])).toBe(`${head}\trefs/heads/main`)
})

test.for(places)('ten files, one after another, $name', async ({ way }) => {
  const clone = join(makeTemporaryDirectory(), 'clone')
  await git(way, ['clone', '-q', '--depth', '1', '--filter', 'blob:none', '--no-checkout', url(way), clone])
  // The clone has no files: each is fetched with its own requests.
  for (const [index, text] of smallFiles.entries()) {
    expect(await git(way, ['-C', clone, 'show', `HEAD:small/${index}.txt`])).toBe(text)
  }
})

function url(way: Way, repository = 'filled.git'): string {
  return `${way.origin}/git/${repository}`
}

async function git(way: Way, args: readonly string[]): Promise<string> {
  const version = way.protocol === 'http2' ? 'HTTP/2' : 'HTTP/1.1'
  const output = await run(['git', '-c', `http.version=${version}`, ...args], { env: environment })
  return output.trim()
}

async function startGitServer(): Promise<{ port: number; probe: string }> {
  const root = makeTemporaryDirectory()
  const repositories = join(root, 'repositories')
  const source = join(work, 'source')
  mkdirSync(join(source, 'small'), { recursive: true })
  for (let index = 0; index < FILES; index++) {
    writeFileSync(join(source, `${index}.bin`), randomBytes(FILE_BYTES))
  }
  for (const [index, text] of smallFiles.entries()) writeFileSync(join(source, 'small', `${index}.txt`), text)
  const local = (...args: string[]): string =>
    execFileSync('git', args, { env: { ...process.env, ...environment }, encoding: 'utf8' })

  local('init', '-q', '-b', 'main', source)
  // Keeps git from searching for differences between random bytes.
  local('-C', source, 'config', 'core.bigFileThreshold', '1m')
  local('-C', source, 'add', '.')
  local('-C', source, 'commit', '-q', '-m', 'Fifty megabytes')
  local('-C', source, 'repack', '-adq')
  head = local('-C', source, 'rev-parse', 'HEAD').trim()
  local('clone', '-q', '--bare', source, join(repositories, 'filled.git'))
  local('-C', join(repositories, 'filled.git'), 'config', 'uploadpack.allowFilter', 'true')
  for (let index = 0; index <= ways.length; index++) {
    local('init', '-q', '--bare', '-b', 'main', join(repositories, `empty-${index}.git`))
    local('-C', join(repositories, `empty-${index}.git`), 'config', 'http.receivepack', 'true')
  }

  const port = await startApache(
    root,
    ['alias', 'cgid', 'env'],
    [
      `ScriptSock ${root}/cgid.sock`,
      'ScriptAlias /git/ /usr/lib/git-core/git-http-backend/',
      `SetEnv GIT_PROJECT_ROOT ${repositories}`,
      'SetEnv GIT_HTTP_EXPORT_ALL 1',
      '<Directory /usr/lib/git-core>',
      '  Options +ExecCGI',
      '  Require all granted',
      '</Directory>',
    ],
  )
  return { port, probe: '/git/filled.git/info/refs?service=git-upload-pack' }
}
