import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { spawnCommand } from '../../support/gateway/process.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'
import { eventually } from '../../support/wait/eventually.ts'
import type { Failure } from '../../tiers/failure.ts'
import { lookAgain } from '../../tiers/second-look.ts'
import { inGroups, runStep, type Step } from '../../tiers/step.ts'

const written = vi.spyOn(process.stdout, 'write').mockReturnValue(true)

const results = makeTemporaryDirectory()
const step = (command: string, rest: Partial<Step> = {}): Step => ({
  name: 'a step',
  command,
  limitMinutes: 1,
  ...rest,
})
const failure: Failure = {
  project: 'pure',
  file: 'test/a.test.ts',
  test: 'counts',
  message: 'no',
  kind: 'other',
}
/** Stands in for vitest: writes these failures, and exits with a status. */
const writes = (failures: readonly Failure[], status: number): string =>
  `echo '${JSON.stringify({ ended: true, passed: 3, failures })}' > $FAILURES_FILE; exit ${status}; :`

test('the output of a step is kept, with its status', async () => {
  const { ok, log, lastLines, tests } = await runStep(step('echo out; echo err >&2; exit 3'), results)
  expect({ ok, lastLines, tests }).toEqual({ ok: false, lastLines: ['out', 'err'], tests: undefined })
  expect(readFileSync(log, 'utf8')).toBe('out\nerr\n')
})

test('steps of one group run at the same time, every other step alone and in its order', () => {
  const named = (name: string, group?: string): Step => step(name, { name, ...(group && { group }) })
  const steps = [named('a', 'lint'), named('b', 'lint'), named('c'), named('d'), named('e', 'lint')]
  expect(inGroups(steps).map((group) => group.map(({ name }) => name))).toEqual([
    ['a', 'b'],
    ['c'],
    ['d'],
    ['e'],
  ])
})

test('a step that does not run alone prints its whole output in one piece', async () => {
  written.mockClear()
  await runStep(step('echo first; sleep 0.1; echo second'), results, false)
  expect(written.mock.calls.map(([piece]) => String(piece))).toEqual(['first\nsecond\n'])
})

test('a step has its own environment, and no standard input', async () => {
  const { ok, lastLines } = await runStep(step('echo $SPECIAL; cat', { env: { SPECIAL: 'x' } }), results)
  expect({ ok, lastLines }).toEqual({ ok: true, lastLines: ['x'] })
})

test('a step that hangs is killed with its child processes', async () => {
  const { ok, lastLines } = await runStep(
    step('echo begun; sleep 1000 & wait', { limitMinutes: 0.005 }),
    results,
  )
  expect({ ok, lastLines }).toEqual({ ok: false, lastLines: ['killed after 0.005 minutes', 'begun'] })
})

/** Not whether somebody still has to take its status. */
function isRunning(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  return /^[^Z]/.test(stdout.trim())
}

test('an interrupted run ends the processes of its steps, even outside of their process group', async () => {
  // As a worker of vitest starts gateways.
  const worker = `
    const { pid } = require('node:child_process').spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' })
    console.log('started ' + pid)
    setInterval(() => undefined, 1000)`
  const begun = step('"$NODE" -e "$WORKER"', { env: { NODE: process.execPath, WORKER: worker } })
  const run = `import { runStep } from ${JSON.stringify(join(import.meta.dirname, '../../tiers/step.ts'))}
    await runStep(${JSON.stringify(begun)}, ${JSON.stringify(results)})`
  const runner = spawnCommand(process.execPath, {}, ['--input-type=module', '-e', run])
  const [, digits] = await runner.waitForLine(/^started (\d+)$/)
  const pid = Number(digits)
  onTestFinished(() => {
    if (isRunning(pid)) process.kill(pid, 'SIGKILL')
  })
  await runner.stop('SIGINT')
  await eventually('it has ended', () => expect(isRunning(pid)).toBe(false))
})

test('a run whose step cannot be started ends no processes of others', async () => {
  const other = spawnCommand('sleep', {}, ['1000'])
  const { pid = 0 } = other.child
  const programs = makeTemporaryDirectory()
  // Here the other process is a child of process 0, as the first ones of a machine or a container are.
  writeFileSync(join(programs, 'ps'), `#!/bin/sh\necho ${pid} 0 ${pid}\n`, { mode: 0o755 })
  const unknown = step('true', { env: { PATH: '/nowhere' } })
  const run = `import { runStep } from ${JSON.stringify(join(import.meta.dirname, '../../tiers/step.ts'))}
    await runStep(${JSON.stringify(unknown)}, ${JSON.stringify(results)})`
  const runner = spawnCommand(process.execPath, { PATH: programs }, ['--input-type=module', '-e', run])
  expect(await runner.exit).toBe(1)
  expect(runner.stderr()).toContain('spawn bash ENOENT')
  expect(isRunning(pid)).toBe(true)
  await other.stop()
})

test('a process that a step leaves does not hold it up', async () => {
  const { ok, seconds } = await runStep(step('sleep 1000 & echo done'), results)
  expect(ok).toBe(true)
  expect(seconds).toBeLessThan(900)
})

test('a file that failed runs again alone, and is flaky if it passes', async () => {
  const mark = join(results, 'ran-before')
  const command = `if [ -e ${mark} ]; then exit 0; fi; touch ${mark}; ${writes([failure], 1)}`
  const first = await runStep(
    step(command, { name: 'tests', tests: '--project pure --project sockets' }),
    results,
  )
  const { failed, flaky } = await lookAgain(first, new Set(), results)
  expect(failed).toEqual([])
  expect(flaky.map(({ failures }) => failures)).toEqual([[failure]])
})

test('a file that fails again has failed', async () => {
  const first = await runStep(step(writes([failure], 1), { tests: '' }), results)
  expect(await lookAgain(first, new Set(), results)).toEqual({ failed: [failure], flaky: [] })
})

test('many failed files are not a coincidence: none runs again', async () => {
  const failures = 'abcdefgh'.split('').map((name) => ({ ...failure, file: `test/${name}.test.ts` }))
  const first = await runStep(step(writes(failures, 1), { tests: '' }), results)
  const { failed } = await lookAgain({ ...first, step: step('exit 0', { tests: '' }) }, new Set(), results)
  expect(failed).toEqual(failures)
})
