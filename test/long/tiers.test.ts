import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { spawnCommand } from '../support/gateway/process.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

/*
 * Tests that the checks find failures: plants failing tests, and test files that leave something open, in a copy of the tree without other
 * tests.
 */

/** Long, because each test starts vitest up to twenty times. */
vi.setConfig({ testTimeout: 600_000 })

const root = join(import.meta.dirname, '../..')
const copied = ['package.json', 'vitest.config.ts', 'proxy', 'origin', 'shared', 'scripts']
const copiedOfTest = ['tiers', 'support', 'engines']

/** Makes a copy of the repository with these files, without the setups that install applications and build images. */
function plant(files: Readonly<Record<string, string>>): string {
  const folder = makeTemporaryDirectory()
  for (const name of [...copied, ...copiedOfTest.map((each) => `test/${each}`)])
    cpSync(join(root, name), join(folder, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const setup = 'export const setup = () => undefined\n'
  const all = {
    'test/seeds.json': '[]\n',
    'test/apps/setup.ts': setup,
    'test/support/containers/container-setup.ts': setup,
    ...files,
  }
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  return folder
}

/** Makes the tests of the copy use this run's Redis, and start scripts from the sources. */
const environment = {
  REDIS_URL: process.env['SHARED_TEST_REDIS_URL'] ?? '',
  TEST_SOURCES: '1',
  NO_COLOR: '1',
}

async function run(cwd: string, command: string): Promise<{ status: number; output: string }> {
  const shell = spawnCommand('bash', environment, ['-c', command], { cwd })
  return { status: await shell.exit, output: shell.output() }
}

/** The ids of the processes in this group that only keep a core busy. */
function busyLoopsOf(group: number): string[] {
  const { stdout } = spawnSync('ps', ['-eo', 'pgid=,pid=,args='], { encoding: 'utf8' })
  return stdout
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .flatMap(([pgid, pid = '', ...args]) =>
      pgid === String(group) && args.join(' ').includes('for (;;);') ? [pid] : [],
    )
}

const failing = `import { expect, test } from 'vitest'
test('one that passes', () => undefined)
test('2 + 2 (planted) is 5', () => expect('four').toBe('five'))
`

/** A file for each vitest project that `.ci/run` uses, with the step that runs the file. */
const planted = [
  ['pure', 'npm test', 'test/unit/planted.test.ts'],
  ['sockets', 'npm test', 'test/e2e/planted.test.ts'],
  ['timing', 'npm test', 'test/unit/shared/v8-gc.test.ts'],
  ['fault', 'long', 'test/long/failover.test.ts'],
  ['containers', 'containers', 'test/container/compose.test.ts'],
  ['apps', 'apps', 'test/apps/git.test.ts'],
] as const

test('a test that fails in any project fails the run, which names it with a command that repeats it', async () => {
  const folder = plant(Object.fromEntries(planted.map(([, , file]) => [file, failing])))
  const steps = [...new Set(planted.map(([, step]) => `'${step}'`))]
  const { status, output } = await run(folder, `node test/tiers/run.ts change ${steps.join(' ')}`)
  expect(status, output).toBe(1)
  const page = output.slice(output.indexOf('\n== FAILED'))
  expect(page).toMatch(new RegExp(`, ${planted.length} failed\\n$`))
  for (const [project, step, file] of planted) {
    const [, entry = ''] =
      new RegExp(`\\d\\) ${step}: ${project} > ${file} > 2 \\+ 2 \\(planted\\) is 5\n([^]*?)\n\n`).exec(
        page,
      ) ?? []
    const [, command = ''] = /to repeat: (.+)/.exec(entry) ?? []
    expect(command, page).toContain(file)
    const again = await run(folder, command)
    expect(again.status, `${command}\n${again.output}`).toBe(1)
    expect(again.output).toMatch(/Tests +1 failed \| 1 skipped/)
  }
})

const leaks = {
  server: `import { createServer } from 'node:net'
await new Promise((resolve) => createServer().listen(0, '127.0.0.1', resolve))`,
  socket: `import { connect, createServer } from 'node:net'
const server = createServer().listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
await new Promise((resolve) => connect(server.address().port, '127.0.0.1', resolve))
server.close()`,
  timer: `setInterval(() => undefined, 1_000)`,
  turn: `const turn = () => setImmediate(turn)
turn()`,
  listener: `process.on('warning', () => undefined)`,
  process: `import { spawn } from 'node:child_process'
spawn('sleep', ['60'], { stdio: 'ignore' })`,
}

test('a file that leaves something open fails, and no other file of its process does', async () => {
  const files = Object.entries(leaks).flatMap(([name, code]) => [
    [
      `test/e2e/${name}.test.ts`,
      `import { test } from 'vitest'\ntest('leaks', async () => undefined)\n${code}\n`,
    ],
    [
      `test/e2e/${name}-after.test.ts`,
      `import { test } from 'vitest'\ntest('leaves nothing', () => undefined)\n`,
    ],
  ])
  const folder = plant(Object.fromEntries(files) as Record<string, string>)
  const { status, output } = await run(
    folder,
    'FAILURES_FILE=result.json npx vitest run --project sockets --no-file-parallelism',
  )
  expect(status, output).toBe(1)
  const { failures } = JSON.parse(readFileSync(join(folder, 'result.json'), 'utf8')) as {
    failures: { file: string; kind: string }[]
  }
  expect(failures.map(({ file, kind }) => `${kind}: ${file}`).sort()).toEqual(
    Object.keys(leaks)
      .map((name) => `leak: test/e2e/${name}.test.ts`)
      .sort(),
  )
})

test('a run that is killed has told which files failed by then, and that it did not end', async () => {
  const folder = plant({
    'test/unit/a.test.ts': failing,
    'test/unit/b.test.ts': `import { test } from 'vitest'
test('takes long', () => new Promise(() => undefined), 600_000)
`,
  })
  const runner = spawnCommand(
    process.execPath,
    { ...environment, FAILURES_FILE: 'result.json' },
    ['node_modules/.bin/vitest', 'run', '--project', 'pure', '--no-file-parallelism'],
    { cwd: folder },
  )
  await runner.waitForLine(/^FAILED test\/unit\/a\.test\.ts > 2 \+ 2 \(planted\) is 5$/, 120_000)
  await runner.stop('SIGKILL')
  const result = JSON.parse(readFileSync(join(folder, 'result.json'), 'utf8')) as {
    failures: { file: string }[]
  }
  expect(result).toMatchObject({ ended: false, passed: 1 })
  expect(result.failures.map(({ file }) => file)).toEqual(['test/unit/a.test.ts'])
})

describe('exploration', () => {
  test('a failure at a random seed becomes a line that the run for a change repeats', async () => {
    const file = 'test/unit/seeded.test.ts'
    const folder = plant({
      [file]: `import { expect, test } from 'vitest'
import { testSeed } from '../support/random/seed.ts'
test('fails at other seeds', () => expect(testSeed()).toBe(20_261))
`,
    })
    const usual = await run(folder, `npx vitest run --project pure ${file}`)
    expect(usual.status, usual.output).toBe(0)

    const explorer = spawnCommand(
      process.execPath,
      environment,
      ['test/tiers/explore.ts', '--project', 'pure', file],
      { cwd: folder },
    )
    const [, line = ''] = await explorer.waitForLine(/^FOUND (\{.*\}): comes again, added/, 120_000)
    // The second round runs together with busy loops.
    await explorer.waitForLine(/^== round 2: /)
    const { pid = 0 } = explorer.child
    await eventually('the loops run', () => busyLoopsOf(pid).length > 0)
    await explorer.stop('SIGINT')
    await eventually('the loops are killed', () => expect(busyLoopsOf(pid)).toEqual([]))
    const found = JSON.parse(line) as { seed: number; file: string }
    expect(JSON.parse(readFileSync(join(folder, 'test/seeds.json'), 'utf8'))).toContainEqual(found)

    const { status, output } = await run(folder, `node test/tiers/run.ts change 'seed ${found.seed}'`)
    expect(status, output).toBe(1)
    expect(output).toContain(`1) seed ${found.seed} of ${file}: pure > ${file} > fails at other seeds\n`)
    expect(output).toContain(`to repeat: TEST_SEED=${found.seed} npx vitest run --project pure ${file}`)
  })
})
