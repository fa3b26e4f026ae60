import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// Adds to `dist/` the types of the modules that the npm package exports.

const root = join(import.meta.dirname, '..')
const types = mkdtempSync(join(tmpdir(), 'sluice-types-'))
const compiler = join(root, 'node_modules/typescript-7/bin/tsc')
const project = join(root, 'scripts/tsconfig.types.json')
execFileSync(process.execPath, [compiler, '-p', project, '--outDir', types], { stdio: 'inherit' })
for (const file of globSync('proxy/{testing/embedded,testing/testcontainers,config/written}/*.d.ts', {
  cwd: types,
}))
  cpSync(join(types, file), join(root, 'dist', file))
rmSync(types, { recursive: true })
