import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { rolldown, type Plugin } from 'rolldown'
import { hashFiles } from './hash-files.ts'
import {
  bundledPath,
  bundledScripts,
  gatewayScripts,
  noCollection,
  poolCheck,
  startScript,
} from './bundled-scripts.ts'
import { wallClockMs } from '../calendar/wall-clock.ts'

// A gateway has some 800 modules, and Node takes half a millisecond of CPU for each at every start, even with a compile cache. That was
// half of all the CPU of `npm test`. So the scripts that tests start by the hundred are bundled into a few files first.

const root = join(import.meta.dirname, '../../..')
const bundles = join(root, 'node_modules/.cache/bundles')
/** Old bundles are kept for a while, as other runs may still use them. */
const KEPT_MS = 24 * 3_600_000

/** The inputs of a bundle, from the root. The lock file stands for the packages. */
const sources = ['package-lock.json', 'package.json', 'origin', 'proxy', 'scripts', 'shared', 'test/support']

/** Bundles the scripts unless bundles of the current sources exist. @returns the folder of the bundles */
export async function bundle(): Promise<string> {
  const hash = hashFiles(root, sources)
  const folder = join(bundles, hash)
  if (existsSync(folder)) utimesSync(folder, new Date(), new Date())
  else {
    // This takes five seconds of CPU.
    const files = await Promise.all(bundledScripts.map(bundleOf))
    // The sources were edited meanwhile.
    if (hashFiles(root, sources) !== hash) return bundle()
    writeAtOnce(folder, [packageFile, ...files.flat()])
  }
  removeOld(folder)
  return folder
}

type File = readonly [path: string, content: string | Uint8Array]

/** Makes the files ES modules. Otherwise Node parses each as CommonJS first, which takes a twentieth of the CPU of a start. */
const packageFile: File = ['package.json', '{ "type": "module" }\n']

/** Makes a separate bundle for each script: with shared chunks, each set of scripts that share code would add a file. */
async function bundleOf(script: string): Promise<File[]> {
  const build = await rolldown({
    input: { main: 'entry' },
    cwd: root,
    platform: 'node',
    plugins: [entryOf(script), withoutFirstCollection, ownPlace],
    logLevel: 'silent',
  })
  const { output } = await build.generate({ format: 'esm', entryFileNames: 'main.js' })
  await build.close()
  return output.map((file) => [
    join(dirname(bundledPath('', script)), file.fileName),
    file.type === 'chunk' ? file.code : file.source,
  ])
}

/** A module that imports the script, and before it, for gateways, the check of the pool. */
function entryOf(script: string): Plugin {
  const scripts = [...(gatewayScripts.includes(script) ? [poolCheck] : []), script]
  return {
    name: 'entry',
    resolveId: (id) => (id === 'entry' ? '\0entry' : undefined),
    load: (id) =>
      id === '\0entry'
        ? scripts.map((path) => `import ${JSON.stringify(join(root, path))}`).join('\n')
        : undefined,
  }
}

/**
 * Leaves out the garbage collection before a gateway listens, which reduces its memory from then on, but takes a quarter of the CPU of a
 * start: too much for processes that live for seconds. Gateways that start from the sources do collect.
 */
const withoutFirstCollection: Plugin = {
  name: 'without first collection',
  resolveId: (id, importer) =>
    importer === join(root, 'proxy/app/start.ts') && id.endsWith('/v8-gc.ts')
      ? join(root, noCollection)
      : undefined,
}

/** Lets a module find files next to its source, such as those of a page or the code of a thread. */
const ownPlace: Plugin = {
  name: 'own place',
  transform(code, id) {
    if (!code.includes('import.meta.') || id.includes('node_modules')) return undefined
    if (id === join(root, startScript)) return withBundledPaths(code)
    const place = { url: pathToFileURL(id).href, filename: id, dirname: dirname(id) }
    return code.replaceAll(/\bimport\.meta\.(url|filename|dirname)\b/g, (_, name: keyof typeof place) =>
      JSON.stringify(place[name]),
    )
  },
}

/** Makes `startScript` start the bundles of the scripts that it names, which are next to its own. */
function withBundledPaths(code: string): string {
  return bundledScripts.reduce(
    (text, script) => text.replaceAll(`'${script}'`, `'${bundledPath('', script)}'`),
    code.replaceAll('import.meta.dirname', "(import.meta.dirname + '/..')"),
  )
}

/** Writes a bundle atomically, as several runs may write the same one at the same time. */
function writeAtOnce(folder: string, files: readonly File[]): void {
  mkdirSync(bundles, { recursive: true })
  const temporary = mkdtempSync(join(bundles, 'new-'))
  for (const [path, content] of files) {
    mkdirSync(dirname(join(temporary, path)), { recursive: true })
    writeFileSync(join(temporary, path), content)
  }
  try {
    renameSync(temporary, folder)
  } catch (error) {
    rmSync(temporary, { recursive: true })
    if (!existsSync(folder)) throw error
  }
}

function removeOld(current: string): void {
  for (const name of readdirSync(bundles)) {
    const folder = join(bundles, name)
    const usedMs = statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0
    if (folder !== current && usedMs < wallClockMs() - KEPT_MS)
      rmSync(folder, { recursive: true, force: true })
  }
}
