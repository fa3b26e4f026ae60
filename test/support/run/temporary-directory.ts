import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atEndOfFile } from './at-end.ts'

const made: string[] = []

atEndOfFile(() => {
  for (const directory of made.splice(0)) rmSync(directory, { recursive: true, force: true })
})

/** Makes an empty directory that is removed at the end of the test file. */
export function makeTemporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'sluice-'))
  made.push(directory)
  return directory
}

/** A `sluice.yaml` of this content, in such a directory; its path. */
export function writeConfigFile(yaml: string): string {
  const path = join(makeTemporaryDirectory(), 'sluice.yaml')
  writeFileSync(path, yaml)
  return path
}
