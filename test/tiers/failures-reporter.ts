import { writeFileSync } from 'node:fs'
import type { Reporter, SerializedError, TestModule } from 'vitest/node'
import { kindOf, type Failure } from './failure.ts'
import { repeatCommand } from './repeat-command.ts'

/** The content of `FAILURES_FILE`. A file's results are in it once the file has ended. */
export type RunResult = {
  /** Whether the run reached its end. A run that was killed has reported what it had found by then. */
  readonly ended: boolean
  readonly passed: number
  readonly failures: readonly Failure[]
}

/** Lines of a message to show before the end of the run. */
const SHOWN_LINES = 4

/**
 * Prints each failure when its file has ended, and at the end the command that repeats it. Writes all failures as JSON to `FAILURES_FILE`,
 * if set. `TEST_RUNNER` is the command that started vitest, if not `npx vitest run`.
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

/** For some of these errors vitest names the file that was running; for none it names a test. */
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

/** The first line of a stack within this repository. */
function ownLine(stack = ''): string {
  return (
    stack.split('\n').find((line) => line.includes(process.cwd()) && !line.includes('node_modules')) ?? ''
  )
}
