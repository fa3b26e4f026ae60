import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atEndOfFile } from './at-end.ts'

const made: string[] = []

atEndOfFile(() => {
  for (const directory of made.splice(0)) rmSync(directory, { recursive: true, force: true })
})

/** Makes an empty directory, which is removed at the end of the test file. */
export function makeTemporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'sluice-'))
  made.push(directory)
  return directory
}
