import { testSeed } from '../support/random/seed.ts'

/** A command for a shell that runs this test, or the whole file, again with the same seed. */
export function repeatCommand(runner: string, project: string, file: string, test: string): string {
  const name = test === '' ? '' : ` -t ${quote(pattern(test))}`
  const words = [`TEST_SEED=${testSeed()}`, runner, project && `--project ${project}`, file]
  return words.filter((word) => word !== '').join(' ') + name
}

/** vitest takes a regular expression, and looks for it in the names of the suites and the test, with spaces between. */
function pattern(test: string): string {
  return test.replaceAll(' > ', ' ').replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}

/** A word of the shell that stands for this text. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
