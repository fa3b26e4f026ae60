import type { Failure } from './failure.ts'
import { repeatCommand, withEnvironment } from './repeat-command.ts'
import { MAX_FLAKY_FILES, type Flaky, type SecondLook } from './second-look.ts'
import type { Outcome, Step } from './step.ts'

/** A step, and the second look at its failures. */
export type Result = Outcome & { readonly secondLook?: SecondLook }

/** Lines of a message to show. */
const SHOWN_LINES = 7

/**
 * The final report, and whether everything passed.
 *
 * @param seconds from the first step to the last: less than the sum of all steps, because some run in parallel
 */
export function lastPage(
  results: readonly Result[],
  seconds: number,
): { readonly text: string; readonly ok: boolean } {
  const flaky = results.flatMap(({ secondLook }) => secondLook?.flaky ?? [])
  const isTooFlaky = new Set(flaky.map(({ failures }) => failures[0]?.file)).size > MAX_FLAKY_FILES
  const failed = results.filter((result) => isFailed(result, isTooFlaky))
  const ok = failed.length === 0
  const passed = results.reduce((sum, { ok, tests }) => sum + (tests?.passed ?? (ok ? 1 : 0)), 0)
  const failures = failed.flatMap((result) => describeResult(result, isTooFlaky))
  const lines = [
    '',
    `== ${ok ? 'all passed' : 'FAILED'} in ${inMinutes(seconds)}`,
    ...results.map((result) => stepLine(result, failed.includes(result))),
    ...failures.flatMap((lines, index) => [
      '',
      `${index + 1}) ${lines[0] ?? ''}`,
      ...lines.slice(1).map(indent),
    ]),
    ...(flaky.length > 0 ? ['', ...flaky.flatMap(describeFlaky)] : []),
    '',
    `${passed} passed, ${failures.length} failed`,
  ]
  return { text: lines.join('\n'), ok }
}

function isFailed({ ok, tests, secondLook }: Result, isTooFlaky: boolean): boolean {
  if (ok) return false
  if (!secondLook || tests?.ended === false) return true
  const { failed, flaky } = secondLook
  // A step that failed without a failed test did not run its tests.
  if (failed.length + flaky.length === 0) return true
  return (
    failed.length > 0 ||
    (flaky.length > 0 && isTooFlaky) ||
    flaky.some(({ objection }) => objection !== undefined)
  )
}

/** Lines for each failure. */
function describeResult(
  { step, log, lastLines, tests, secondLook }: Result,
  isTooFlaky: boolean,
): string[][] {
  const flaky = (secondLook?.flaky ?? []).filter(({ objection }) => isTooFlaky || objection !== undefined)
  const known = [
    ...(secondLook?.failed ?? tests?.failures ?? []).map((failure) => describeFailure(step, failure)),
    ...flaky.flatMap(({ failures, objection }) =>
      failures.map((failure) => [
        ...describeFailure(step, failure),
        `passed when it ran again alone, but ${objection ?? `more than ${MAX_FLAKY_FILES} files were flaky`}`,
      ]),
    ),
  ]
  const found = known.map(([title = '', ...lines]) => [`${step.name}: ${title}`, ...lines, `output: ${log}`])
  if (found.length > 0 && tests?.ended !== false) return found
  const command = [step.command, step.tests].filter(Boolean).join(' ')
  const repeat = `to repeat: ${withEnvironment(step.env ?? {}, command)}`
  return [[step.name, ...lastLines, repeat, `output: ${log}`], ...found]
}

function describeFailure({ command, env }: Step, failure: Failure): string[] {
  const { project, file, test, message } = failure
  const lines = message
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(0, SHOWN_LINES)
  const title = [project, file, test].filter((part) => part !== '').join(' > ')
  return [
    title === '' ? 'outside of any test' : title,
    ...lines,
    `to repeat: ${repeatCommand(command, failure, env)}`,
  ]
}

function describeFlaky({ failures, objection, logs }: Flaky): string[] {
  const [first] = failures
  const excuse = objection === undefined ? '' : `, and counts: ${objection}`
  return [
    ...failures.map(({ file, test }) => `FLAKY ${file}: ${test}${excuse}`),
    `  ${(first?.message ?? '').split('\n', 1)[0] ?? ''}`,
    `  outputs: ${logs.join(', ')}`,
  ]
}

function stepLine({ step, seconds, tests, ok }: Result, failed: boolean): string {
  const count = tests ? `, ${tests.passed} tests passed` : ''
  const state = failed ? 'FAILED' : ok ? 'passed' : 'flaky'
  return `  ${state.padEnd(7)} ${inMinutes(seconds).padStart(6)}  ${step.name}${count}`
}

function inMinutes(seconds: number): string {
  const whole = Math.round(seconds)
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`
}

function indent(line: string): string {
  return `   ${line}`
}
