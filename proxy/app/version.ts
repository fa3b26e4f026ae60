import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The version in package.json. */
export const version = readVersion()

function readVersion(): string {
  const text = readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')
  const { version } = JSON.parse(text) as { version: string }
  return version
}
