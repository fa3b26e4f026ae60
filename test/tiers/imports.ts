import { readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

/** Folders that a path in quotes may begin at, besides that of the file. */
const MENTIONED = /['"`]([\w@./-]+\.(?:ts|js|yaml|json|py))['"`]/g

/**
 * The file and all that it reaches: by imports, and by the names of files in quotes, such as the scripts that it runs as
 * processes of their own. Paths are from the repository's root, where this must be called.
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
