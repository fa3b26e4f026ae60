import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

// Adds to `dist/` the types of the modules that the npm package exports, and of the modules that those types import.

const root = join(import.meta.dirname, '..')
const types = mkdtempSync(join(tmpdir(), 'sluice-types-'))
const compiler = join(root, 'node_modules/typescript-7/bin/tsc')
const project = join(root, 'scripts/tsconfig.types.json')
execFileSync(process.execPath, [compiler, '-p', project, '--outDir', types], { stdio: 'inherit' })
for (const file of reachableFrom(exportedTypes())) cpSync(join(types, file), join(root, 'dist', file))
rmSync(types, { recursive: true })

/** Returns the types that package.json exports, by their paths in `dist/`. */
function exportedTypes(): string[] {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, string | { types: string }>
  }
  return Object.values(exports).flatMap((entry) =>
    typeof entry === 'string' ? [] : [entry.types.replace('./dist/', '')],
  )
}

/** Adds to these files those that they import, directly or not. */
function reachableFrom(files: readonly string[]): ReadonlySet<string> {
  const found = new Set(files)
  // A loop over a set also visits elements that are added meanwhile.
  for (const file of found) {
    const code = readFileSync(join(types, file), 'utf8')
    for (const [, imported = ''] of code.matchAll(/ from '(\.[^']+)\.ts'/g))
      found.add(join(dirname(file), `${imported}.d.ts`))
  }
  return found
}
