import { testSeed } from '../support/random/seed.ts'
import type { Failure } from './failure.ts'

type Environment = Readonly<Record<string, string>>

/**
 * A shell command that runs this test, or the whole file, again with the same seed.
 *
 * @param runner the command that starts vitest
 * @param env variables to set only for that run
 */
export function repeatCommand(
  runner: string,
  { project, file, test }: Pick<Failure, 'project' | 'file' | 'test'>,
  env: Environment = {},
): string {
  const words = [runner, project && `--project ${project}`, file, test && `-t ${quote(pattern(test))}`]
  const command = words.filter((word) => word !== '').join(' ')
  return withEnvironment({ TEST_SEED: String(testSeed()), ...env }, command)
}

export function withEnvironment(env: Environment, command: string): string {
  return [...Object.entries(env).map(([name, value]) => `${name}=${value}`), command].join(' ')
}

/** vitest takes a regular expression, and matches it against the names of the suites and the test, joined by spaces. */
function pattern(test: string): string {
  return test.replaceAll(' > ', ' ').replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}

/** Quotes a text as one word for a shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
