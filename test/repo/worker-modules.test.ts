import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, test } from 'vitest'

// A worker holds every module that it loads for as long as it runs. It gets its settings from the primary process, and needs none of the
// modules that read and check them; zod alone takes 4 MB. `import()` is not followed, because it loads a module only when needed.

const root = resolve(import.meta.dirname, '../..')
/** An import or export that exists at run time, with the module that it names. */
const statement = /^(?:import|export) (?!type )(?:[^;'"()]* from )?'([^']+)'/gm

/** The modules that a file imports statically, directly or through others, each with its importer. */
function importedBy(entry: string): ReadonlyMap<string, string> {
  const importers = new Map([[entry, '']])
  for (const [file] of importers) {
    if (!file.endsWith('.ts')) continue
    for (const [, name = ''] of readFileSync(join(root, file), 'utf8').matchAll(statement)) {
      const imported = name.startsWith('.') ? relative(root, join(root, dirname(file), name)) : name
      if (!importers.has(imported)) importers.set(imported, file)
    }
  }
  return importers
}

test('a gateway process loads what reads settings only where it reads them itself', () => {
  const importers = importedBy('proxy/app/start.ts')
  expect([...importers.keys()]).toContain('proxy/server/exchange.ts')
  expect(Object.fromEntries([...importers].filter(([name]) => ['zod', 'yaml'].includes(name)))).toEqual({})
})
