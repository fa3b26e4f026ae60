import { writeFileSync } from 'node:fs'
import type { Reporter, SerializedError, TestModule } from 'vitest/node'
import { kindOf, type Failure } from './failure.ts'
import { repeatCommand } from './repeat-command.ts'

/** What `FAILURES_FILE` gets at the end of a run. */
export type RunResult = { readonly passed: number; readonly failures: readonly Failure[] }

/**
 * Prints for each failure the command that repeats it, and writes all of them as JSON to `FAILURES_FILE`, if that is set.
 * `TEST_RUNNER` is how vitest was started, if not by `npx vitest run`.
 */
export class FailuresReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const failures = [...modules.flatMap(failuresOf), ...unhandled.map(ofUnhandled)]
    const passed = modules.flatMap((module) => [...module.children.allTests('passed')]).length
    const file = process.env['FAILURES_FILE']
    if (file) writeFileSync(file, JSON.stringify({ passed, failures } satisfies RunResult))
    const runner = process.env['TEST_RUNNER'] ?? 'npx vitest run'
    for (const failure of failures) console.log(`To repeat: ${repeatCommand(runner, failure)}`)
  }
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
