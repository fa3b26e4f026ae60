import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atEnd, atEndOfFile } from './at-end.ts'

const made: string[] = []

function removeAll(): void {
  for (const directory of made.splice(0)) rmSync(directory, { recursive: true, force: true })
}

atEndOfFile(removeAll)
// For programs that are not test files.
atEnd(removeAll)

/** Makes an empty directory that is removed at the end of the test file, or of the program. */
export function makeTemporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'sluice-'))
  made.push(directory)
  return directory
}

/** Writes a `sluice.yaml` with this content into such a directory, and returns its path. */
export function writeConfigFile(yaml: string): string {
  const path = join(makeTemporaryDirectory(), 'sluice.yaml')
  writeFileSync(path, yaml)
  return path
}
