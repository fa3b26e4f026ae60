import { readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

/** Matches a path in quotes, which may be relative to the repository's root or to the file. */
const MENTIONED = /['"`]([\w@./-]+\.(?:ts|js|yaml|json|py))['"`]/g

/**
 * The file and every file that it reaches: by imports, and by file names in quotes, such as scripts that it runs in their own processes.
 * Paths are relative to the repository's root, which must be the current directory.
 */
export function importsOf(file: string): Set<string> {
  const reached = new Set([normalize(file)])
  for (const path of reached) {
    for (const [, name = ''] of readText(path).matchAll(MENTIONED))
      for (const candidate of [join(dirname(path), name), normalize(name)])
        if (isFile(candidate)) reached.add(candidate)
  }
  return reached
}

function readText(path: string): string {
  return /\.(?:ts|js)$/.test(path) && isFile(path) ? readFileSync(path, 'utf8') : ''
}

function isFile(path: string): boolean {
  return !path.startsWith('..') && (statSync(path, { throwIfNoEntry: false })?.isFile() ?? false)
}
