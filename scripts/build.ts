import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// Makes `dist/`, the contents of the npm package: the gateway without types, since Node does not take types out of
// installed packages, the types of the exported modules, and the files that are served as they are.

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')

function compile(...options: readonly string[]): void {
  const compiler = join(root, 'node_modules/typescript-7/bin/tsc')
  const project = join(root, 'scripts/tsconfig.build.json')
  execFileSync(process.execPath, [compiler, '-p', project, ...options], { stdio: 'inherit' })
}

rmSync(dist, { recursive: true, force: true })
compile()

const types = mkdtempSync(join(tmpdir(), 'sluice-types-'))
compile('--declaration', '--emitDeclarationOnly', '--removeComments', 'false', '--outDir', types)
for (const file of globSync('proxy/{testing/embedded,testing/testcontainers,config/written}/*.d.ts', {
  cwd: types,
}))
  cpSync(join(types, file), join(dist, file))
rmSync(types, { recursive: true })

for (const file of globSync('proxy/**/*.{html,css,js}', { cwd: root }))
  cpSync(join(root, file), join(dist, file))
