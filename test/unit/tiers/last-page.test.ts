import { describe, expect, test } from 'vitest'
import { lastPage, type Result } from '../../tiers/last-page.ts'
import type { Failure, FailureKind } from '../../tiers/failure.ts'
import { objectionTo } from '../../tiers/second-look.ts'

const failureIn = (file: string, kind: FailureKind = 'other'): Failure => ({
  project: 'pure',
  file,
  test: 'suite > counts',
  message: Array.from({ length: 40 }, (_, line) => `line ${line}`).join('\n'),
  kind,
})
const result = (name: string, ok: boolean, rest: Partial<Result> = {}): Result => ({
  step: { name, command: `run-${name}`, limitMinutes: 1 },
  ok,
  seconds: 61,
  log: `test-results/${name}.log`,
  lastLines: [`${name} said so`],
  ...rest,
})
const flaky = (file: string, objection?: string): Result =>
  result(file, false, {
    tests: { ended: true, passed: 1, failures: [failureIn(file)] },
    secondLook: {
      failed: [],
      flaky: [{ failures: [failureIn(file)], objection, logs: ['first.log', 'second.log'] }],
    },
  })

describe('the last page', () => {
  test('the last page of a good run has the time of each step, and ends with the numbers of passed tests', () => {
    const { text, ok } = lastPage(
      [result('lint', true), result('npm test', true, { tests: { ended: true, passed: 41, failures: [] } })],
      60,
    )
    expect(ok).toBe(true)
    expect(text).toMatch(/^\n== all passed in 1:00\n/)
    expect(text).toMatch(/passed +1:01 {2}lint\n.*passed +1:01 {2}npm test, 41 tests passed\n/)
    expect(text).toMatch(/\n42 passed, 0 failed$/)
  })

  test('the last page names each failure in at most ten lines, with the command that repeats it', () => {
    const failures = [failureIn('test/a.test.ts'), failureIn('test/b.test.ts')]
    const { text, ok } = lastPage(
      [
        result('lint', false),
        result('npm test', false, {
          tests: { ended: true, passed: 5, failures },
          secondLook: { failed: failures, flaky: [] },
        }),
      ],
      60,
    )
    expect(ok).toBe(false)
    const parts = text.split(/\n(?=\d\) )/).slice(1)
    expect(parts.map((part) => part.split('\n', 1)[0])).toEqual([
      '1) lint',
      '2) npm test: pure > test/a.test.ts > suite > counts',
      '3) npm test: pure > test/b.test.ts > suite > counts',
    ])
    expect(parts[0]).toMatch(/lint said so\n.*to repeat: run-lint\n/)
    expect(parts[1]).toMatch(
      /to repeat: TEST_SEED=\d+ run-npm test --project pure test\/a\.test\.ts -t 'suite counts'/,
    )
    for (const part of parts)
      expect(part.split('\n\n', 1)[0]?.trim().split('\n').length).toBeLessThanOrEqual(10)
    expect(text).toMatch(/\n5 passed, 3 failed$/)
  })

  test('repeats a step with the seed that it ran with', () => {
    const step = { name: 'fuzz', command: 'npm run fuzz', limitMinutes: 1, env: { TEST_SEED: '7' } }
    const failures = [failureIn('test/a.test.ts')]
    const { text } = lastPage(
      [
        result('fuzz', false, { step }),
        result('tests', false, { step, tests: { ended: true, passed: 0, failures } }),
      ],
      60,
    )
    expect(text).toContain('to repeat: TEST_SEED=7 npm run fuzz\n')
    expect(text).toContain('to repeat: TEST_SEED=7 npm run fuzz --project pure test/a.test.ts')
  })

  test('a step that was killed fails, and tells what it had found by then', () => {
    const tests = { ended: false, passed: 7, failures: [failureIn('test/a.test.ts')] }
    const killed = { ...result('long', false), tests, lastLines: ['killed after 60 minutes', 'last line'] }
    const excused = { ...flaky('test/a.test.ts'), ...killed }
    const pages = [
      lastPage([excused], 60),
      lastPage([{ ...killed, secondLook: { failed: tests.failures, flaky: [] } }], 60),
    ]
    for (const { text, ok } of pages) {
      expect(ok).toBe(false)
      expect(text).toMatch(/\n1\) long\n +killed after 60 minutes\n/)
    }
    expect(pages[0]?.text).toContain('FLAKY test/a.test.ts')
    expect(pages[1]?.text).toContain('\n2) long: pure > test/a.test.ts > suite > counts\n   line 0\n')
  })

  test('the last page says which file is flaky, and that passes', () => {
    const { text, ok } = lastPage([flaky('test/a.test.ts')], 60)
    expect(ok).toBe(true)
    expect(text).toContain('FLAKY test/a.test.ts: suite > counts\n  line 0\n  outputs: first.log, second.log')
  })

  test.each([
    ['one that counts', [flaky('test/a.test.ts', 'the change touches it')]],
    ['three flaky files', ['a', 'b', 'c'].map((name) => flaky(`test/${name}.test.ts`))],
    [
      'a step that ended without a failure',
      [result('npm test', false, { secondLook: { failed: [], flaky: [] } })],
    ],
  ])('fails with %s', (_, results) => {
    expect(lastPage(results, 60).ok).toBe(false)
  })
})

describe('a failure that does not come again', () => {
  const file = 'test/unit/tiers/failure.test.ts'

  test.each(['exact count', 'crash', 'leak', 'uncaught error'] as const)(
    'a failure that does not come again counts if it was: %s',
    (kind) => {
      expect(objectionTo([failureIn(file), failureIn(file, kind)], new Set())).toContain(kind)
    },
  )

  test.each([file, 'test/tiers/failure.ts'])(
    'a failure that does not come again counts if the change touches %s',
    (path) => {
      expect(objectionTo([failureIn(file)], new Set(['README.md', path]))).toBe(`the change touches ${path}`)
    },
  )

  test('a failure that does not come again counts if a test of a process is hit and the change touches the gateway', () => {
    const touched = new Set(['proxy/http/http1/connection.ts'])
    expect(objectionTo([failureIn('test/e2e/tls.test.ts')], touched)).toContain(
      'proxy/http/http1/connection.ts',
    )
  })

  test('a failure that does not come again fails the run if the changed files are unknown', () => {
    expect(objectionTo([failureIn(file)], undefined)).toBeDefined()
  })

  test('a failure that does not come again is excused if the change is elsewhere', () => {
    expect(objectionTo([failureIn(file)], new Set(['proxy/main.ts', 'README.md']))).toBeUndefined()
  })
})
