import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'

/** The version in package.json. */
export const version = readVersion()

function readVersion(): string {
  // The compiled file is one folder deeper than this source file, so search for package.json.
  const file = findPackageJSON(import.meta.url)
  if (!file) throw new Error('package.json is missing')
  const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version: string }
  return version
}
