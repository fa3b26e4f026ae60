import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { testSeed } from '../../support/random/seed.ts'
import { repeatCommand } from '../../tiers/repeat-command.ts'

test('names the seed, the project and the file', () => {
  expect(repeatCommand('npx vitest run', 'pure', 'test/a.test.ts', '')).toBe(
    `TEST_SEED=${testSeed()} npx vitest run --project pure test/a.test.ts`,
  )
})

test('a shell passes any name on as a pattern that matches it', () => {
  const names = fc.sample(fc.stringMatching(/^[ -~]{1,30}$/), { numRuns: 200, seed: testSeed() })
  const script = names
    .map((name) => repeatCommand("printf '%s\\n'", 'pure', 'a.test.ts', `suite > ${name}`))
    .join('\n')
  const words = execFileSync('bash', ['-c', script], { encoding: 'utf8' }).split('\n')
  names.forEach((name, index) => {
    expect(`suite ${name}`).toMatch(new RegExp(words[5 * index + 4] ?? 'none'))
  })
})
