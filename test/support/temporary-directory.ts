import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

const made: string[] = []

afterAll(() => {
  for (const directory of made) rmSync(directory, { recursive: true, force: true })
})

/** Makes an empty directory, which is removed at the end of the test file. */
export function makeTemporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'sluice-'))
  made.push(directory)
  return directory
}
