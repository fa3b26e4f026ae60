import { writeFileSync } from 'node:fs'
import type { Reporter, SerializedError, TestModule } from 'vitest/node'
import { kindOf, type Failure } from './failure.ts'
import { repeatCommand } from './repeat-command.ts'

/** What `FAILURES_FILE` has: of each file from its end on. */
export type RunResult = {
  /** Whether the run came to its end. One that was killed has told what it found by then. */
  readonly ended: boolean
  readonly passed: number
  readonly failures: readonly Failure[]
}

/** Lines of a message that are shown before the end of the run. */
const SHOWN_LINES = 4

/**
 * Prints each failure when its file has ended, and at the end the command that repeats it, and writes all of them as JSON to
 * `FAILURES_FILE`, if that is set. `TEST_RUNNER` is how vitest was started, if not by `npx vitest run`.
 */
export class FailuresReporter implements Reporter {
  #passed = 0
  readonly #failures: Failure[] = []

  onTestModuleEnd(module: TestModule): void {
    const failures = failuresOf(module)
    this.#failures.push(...failures)
    this.#passed += countPassed(module)
    writeResult({ ended: false, passed: this.#passed, failures: this.#failures })
    for (const failure of failures) console.log(briefly(failure))
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const failures = [...modules.flatMap(failuresOf), ...unhandled.map(ofUnhandled)]
    const passed = modules.reduce((sum, module) => sum + countPassed(module), 0)
    writeResult({ ended: true, passed, failures })
    const runner = process.env['TEST_RUNNER'] ?? 'npx vitest run'
    for (const failure of failures) console.log(`To repeat: ${repeatCommand(runner, failure)}`)
  }
}

function writeResult(result: RunResult): void {
  const file = process.env['FAILURES_FILE']
  if (file) writeFileSync(file, JSON.stringify(result))
}

function countPassed(module: TestModule): number {
  return [...module.children.allTests('passed')].length
}

function briefly({ file, test, message }: Failure): string {
  const lines = message.split('\n').filter((line) => line.trim() !== '')
  return [
    `FAILED ${[file, test].filter((part) => part !== '').join(' > ')}`,
    ...lines.slice(0, SHOWN_LINES),
  ].join('\n  ')
}

function failuresOf(module: TestModule): Failure[] {
  const describe = (test: string, errors: readonly SerializedError[]): Failure[] => {
    const [error] = errors
    if (!error) return []
    const { name: project } = module.project
    const message = errors.map(({ message, stack }) => `${message}\n${ownLine(stack)}`).join('\n')
    return [{ project, file: module.relativeModuleId, test, message, kind: kindOf(error) }]
  }
  return [
    ...describe('', module.errors()),
    ...[...module.children.allSuites()].flatMap((suite) => describe(suite.fullName, suite.errors())),
    ...[...module.children.allTests('failed')].flatMap((test) =>
      describe(test.fullName, test.result().errors ?? []),
    ),
  ]
}

/** vitest says of some which file was running, and knows no test for any. */
function ofUnhandled(error: SerializedError): Failure {
  const file = typeof error['VITEST_TEST_PATH'] === 'string' ? error['VITEST_TEST_PATH'] : ''
  const isCrash = /Worker|exited|out of memory/.test(error.message)
  return {
    project: '',
    file: file.replace(`${process.cwd()}/`, ''),
    test: '',
    message: `${error.message}\n${error.stack ?? ''}`,
    kind: isCrash ? 'crash' : 'uncaught error',
  }
}

/** The first line of a stack that is in this repository. */
function ownLine(stack = ''): string {
  return (
    stack.split('\n').find((line) => line.includes(process.cwd()) && !line.includes('node_modules')) ?? ''
  )
}
