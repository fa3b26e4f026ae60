import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { freePort } from '../support/network/ports.ts'
import { runNode, spawnCommand } from '../support/gateway/process.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

const root = join(import.meta.dirname, '../..')
const { engines, scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  engines: { node: string }
  scripts: Record<'start' | 'gateway' | 'origin' | 'keys' | 'sluice', string>
}

/** Makes Node report another version. */
function pretend(version: string): Record<string, string> {
  const code = `Object.defineProperty(process,'versions',{value:{...process.versions,node:'${version}'}})`
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` }
}

test.each(['20.20.2', '23.11.1', '8.17.0'])(
  'Node %s is reported as too old, in one line',
  async (version) => {
    const { status, stdout, stderr } = await runNode('scripts/run.js', pretend(version), ['proxy/main.ts'])
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr.split('\n')).toHaveLength(2)
    expect(engines.node).toBe('>=24')
    expect(stderr).toContain(`Node.js 24 or later is needed, and this is ${version} (${process.execPath})`)
  },
)

// With the options that npm uses: a gateway without them starts itself again, and then Node itself prints the error.
test.each(['start', 'gateway', 'origin', 'keys', 'sluice'] as const)(
  'without its packages npm run %s says how to install them',
  async (name) => {
    const copy = makeTemporaryDirectory()
    for (const part of ['scripts', 'package.json', 'proxy', 'origin', 'shared'])
      cpSync(join(root, part), join(copy, part), { recursive: true })
    const shell = spawnCommand('sh', {}, ['-c', scripts[name]], { cwd: copy })
    expect({ status: await shell.exit, stderr: shell.stderr() }).toEqual({
      status: 1,
      stderr: expect.stringMatching(/^Cannot find package '[a-z-]+': run "npm ci" first\n$/) as string,
    })
  },
)

test('an entry that is started from another directory gets its arguments', async () => {
  const cwd = makeTemporaryDirectory()
  const { status, stdout } = await runNode(
    'scripts/run.js',
    {},
    ['origin/keys.ts', 'create', '--project', 'a', '--json'],
    {
      cwd,
    },
  )
  expect({ status, project: (JSON.parse(stdout) as { project: string }).project }).toEqual({
    status: 0,
    project: 'a',
  })
})

test('the compile cache of a start is used by the next', async () => {
  const wrong = { PORT: 'none', NODE_COMPILE_CACHE: '' }
  await runNode('scripts/run.js', wrong, ['proxy/main.ts'])
  const { stderr } = await runNode('scripts/run.js', { ...wrong, NODE_DEBUG_NATIVE: 'COMPILE_CACHE' }, [
    'proxy/main.ts',
  ])
  expect(stderr).toMatch(
    /retrieving transpile cache for StrippedTypeScript \S*proxy\/app\/gateway\.ts\.\.\.success/,
  )
})

describe('as npm runs it: the script and the arguments in a shell, and signals to that shell', () => {
  test.each([
    [
      'gateway',
      '--help',
      /^unknown argument --help: settings come from .*sluice\.yaml.*docs\/configuration\.md$/,
    ],
    ['gateway', '--admin-token=secret', /^unknown argument --admin-token: settings come from [^=]*$/],
    ['gateway', 'redis://:secret@host', /^unknown argument: settings come from .*$/],
    ['start', '--port', /^unknown argument --port: settings come from .*docs\/configuration\.md$/],
    ['origin', '-p8080', /^unknown argument -p: settings come from .*docs\/origin\.md$/],
  ] as const)(
    'npm run %s %s is wrong usage: status 2 and one line, which shows no values',
    async (name, argument, message) => {
      const shell = spawnCommand('sh', {}, ['-c', `${scripts[name]} ${argument} 8081`])
      expect([await shell.exit, shell.stdout()]).toEqual([2, ''])
      expect(shell.stderr().split('\n')).toEqual([expect.stringMatching(message), ''])
    },
  )

  // Workers run the entry itself.
  test.each([
    ['start', '1'],
    ['gateway', '1'],
    ['gateway', '2'],
    ['origin', '1'],
  ] as const)('a signal to npm run %s ends it in order, WORKERS=%s', async (name, workers) => {
    const port = String(await freePort())
    const env = {
      PORT: port,
      ADMIN_PORT: '0',
      ORIGIN_PORT: port,
      ORIGIN_DB: join(makeTemporaryDirectory(), 'origin.db'),
      CONFIG_FILE: 'test/support/gateway/defaults.yaml',
      UPSTREAM_URL: 'http://127.0.0.1:9',
      WORKERS: workers,
    }
    const shell = spawnCommand('sh', env, ['-c', scripts[name]])
    await shell.waitForLine(/"msg":"listening"/)
    expect(await shell.stop('SIGTERM')).toBe(0)
    expect(shell.stdout()).toContain('"msg":"stopped"')
  })
})
