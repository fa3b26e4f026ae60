import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { testSeed } from '../../support/random/seed.ts'
import { repeatCommand } from '../../tiers/repeat-command.ts'

test('the command that repeats a failure names the seed, the project and the file', () => {
  expect(repeatCommand('npx vitest run', { project: 'pure', file: 'test/a.test.ts', test: '' })).toBe(
    `TEST_SEED=${testSeed()} npx vitest run --project pure test/a.test.ts`,
  )
})

test('the command that repeats a failure names the seed of that run and its other variables', () => {
  const failure = { project: 'fault', file: 'test/a.test.ts', test: '' }
  expect(repeatCommand('npx vitest run', failure, { TEST_SEED: '7', WIRE_RUNS: '9' })).toBe(
    'TEST_SEED=7 WIRE_RUNS=9 npx vitest run --project fault test/a.test.ts',
  )
})

test('a shell passes any name on as a pattern that matches it', () => {
  const names = fc.sample(fc.stringMatching(/^[ -~]{1,30}$/), { numRuns: 200, seed: testSeed() })
  const script = names
    .map((name) =>
      repeatCommand("printf '%s\\n'", { project: 'pure', file: 'a.test.ts', test: `suite > ${name}` }),
    )
    .join('\n')
  const words = execFileSync('bash', ['-c', script], { encoding: 'utf8' }).split('\n')
  names.forEach((name, index) => {
    expect(`suite ${name}`).toMatch(new RegExp(words[5 * index + 4] ?? 'none'))
  })
})
