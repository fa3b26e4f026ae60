import { cpSync, globSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { rolldown, type Plugin } from 'rolldown'

// Makes `dist/`, which the npm package and the image run: the gateway without types, because Node does not strip types in installed
// packages, and the files that are served unchanged. Its modules are bundled into a few files, from which the gateway starts with half the
// CPU time and less memory (docs/decisions/memory-at-rest.md).

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')

/** The modules that Node runs, that threads run, or that users import. Each becomes a file of its own, at the path of its source. */
const entries = [
  'proxy/main',
  'proxy/healthcheck',
  'proxy/cli/bin',
  'proxy/app/reload/settings-thread',
  'proxy/request/addresses/lists/list-thread',
  'proxy/testing/embedded/start-sluice',
  'proxy/testing/testcontainers/sluice-container',
]

/** The only package that is bundled: unbundled, it would load mostly its messages in 63 languages. */
const bundledPackage = 'zod'

/** Placeholder, in the code of a module, for the relative path from its file in `dist/` to `dist/`, until that file is known. */
const toDist = '__TO_DIST__'

/** Resolves the files that a module finds beside its source, such as the code of a thread, to the same path in `dist/`. */
const ownPlace: Plugin = {
  name: 'own place',
  transform(code, id) {
    const base = ', import.meta.url)'
    if (!code.includes(base) || id.includes('node_modules')) return undefined
    const place = JSON.stringify(`${toDist}/${relative(root, id)}`)
    return code.replaceAll(base, `, new URL(${place}, import.meta.url))`)
  },
}

/** Escapes characters beyond Latin-1: a single one makes V8 keep the whole source in two bytes per character. */
function escapeBeyondLatin1(code: string): string {
  return code.replaceAll(/[^\0-\xff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

async function bundle(): Promise<void> {
  const build = await rolldown({
    input: Object.fromEntries(entries.map((entry) => [entry, join(root, `${entry}.ts`)])),
    cwd: root,
    platform: 'node',
    external: (id) =>
      /^[@a-z][^:]*$/.test(id) && id !== bundledPackage && !id.startsWith(`${bundledPackage}/`),
    plugins: [ownPlace],
    // No comment with the path of each module: the files are loaded at each start.
    experimental: { attachDebugInfo: 'none' },
  })
  const { output } = await build.generate({
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'proxy/chunks/[name]-[hash].js',
    comments: false,
  })
  await build.close()
  for (const file of output) {
    if (file.type !== 'chunk') throw new Error(`${file.fileName} is not code`)
    const path = join(dist, file.fileName)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, escapeBeyondLatin1(file.code.replaceAll(toDist, relative(dirname(path), dist))))
  }
  cpSync(join(root, 'node_modules', bundledPackage, 'LICENSE'), join(dist, `LICENSE-${bundledPackage}`))
}

rmSync(dist, { recursive: true, force: true })
await bundle()
for (const file of globSync('proxy/**/*.{html,css,js}', { cwd: root }))
  cpSync(join(root, file), join(dist, file))
