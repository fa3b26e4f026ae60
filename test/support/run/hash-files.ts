import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'

/**
 * A short hash of the contents of these files and of the path of their root.
 *
 * @param paths files, and folders with everything in them, from the root
 */
export function hashFiles(root: string, paths: readonly string[]): string {
  const hash = createHash('sha256').update(root)
  for (const path of paths.flatMap((path) => filesIn(root, path))) {
    const content = readFileSync(join(root, path))
    hash.update(`\n${path} ${content.length}\n`).update(content)
  }
  return hash.digest('hex').slice(0, 16)
}

/** The file itself, or all files in a folder and its subfolders. */
function filesIn(root: string, path: string): string[] {
  if (statSync(join(root, path)).isFile()) return [path]
  return readdirSync(join(root, path), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .toSorted()
}
