import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

/*
 * An unbounded wait hangs, a short one fails on a busy machine, and a test that is repeated until it passes hides why it fails. Use
 * test/support/wait/ to wait for asynchronous results.
 */

const folder = join(import.meta.dirname, '..')

const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.includes('node_modules') && name !== 'repo/waits.test.ts')
  .map((name) => ({ name, lines: readFileSync(join(folder, name), 'utf8').split('\n') }))

function linesWith(pattern: RegExp): string[] {
  return sources.flatMap(({ name, lines }) =>
    lines.flatMap((line, i) => (pattern.test(line) ? [`${name}:${i + 1}: ${line.trim()}`] : [])),
  )
}

test.each([
  ['waits by another function', /\bvi\.wait(?:For|Until)\(|^\s*\.poll\(|\bexpect\.poll\(/],
  ['is repeated until it passes', /\bretry: \d+[,\s}]*(?:async|\(|$)|\{ retry: /],
  ['sleeps in a promise of its own', /await new Promise\(\(resolve\) => setTimeout\(resolve, [^)]*\)\)/],
  ['reads the wall clock itself, in place of performance.now or wallClockMs', /\bDate\.now\(\)/],
  ['draws random numbers that have no seed', /\bMath\.random\(\)/],
  [
    'looks again and again without an end',
    /while \(.*\) await (?:sleep\(|new Promise\(\(resolve\) => setTimeout)/,
  ],
])('no test %s', (_, pattern) => {
  // The first file reads the real clock for the others; the clocks of the other files are fakes.
  const allowed =
    /^(?:support\/calendar\/wall-clock|property\/bounded-memory\.test|unit\/limits\/(?:keys\/tokens\/key-set|store\/redis\/(?:node-log|poll)|waiting\/(?:turn-queue|waiting))\.test)\.ts:/
  expect(linesWith(pattern).filter((line) => !allowed.test(line))).toEqual([])
})
