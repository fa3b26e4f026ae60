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

// A gateway has some 800 modules, and Node takes half a millisecond of CPU for each at every start, compiled or not: in a run of
// `npm test` that was half of all it takes. So the scripts that tests start by the hundred are put into a few files first.

const root = join(import.meta.dirname, '../../..')
const bundles = join(root, 'node_modules/.cache/bundles')
/** Other runs may still use theirs. */
const KEPT_MS = 24 * 3_600_000

/** Where everything is that a bundle is made of, from the root. Packages are those of the lock file. */
const sources = ['package-lock.json', 'package.json', 'origin', 'proxy', 'scripts', 'shared', 'test/support']

/** Bundles the scripts from the sources as they are, unless that is done already. @returns the folder of the bundles */
export async function bundle(): Promise<string> {
  const hash = hashFiles(root, sources)
  const folder = join(bundles, hash)
  if (existsSync(folder)) utimesSync(folder, new Date(), new Date())
  else {
    // This takes five seconds of CPU.
    const files = await Promise.all(bundledScripts.map(bundleOf))
    // Edited meanwhile.
    if (hashFiles(root, sources) !== hash) return bundle()
    writeAtOnce(folder, [packageFile, ...files.flat()])
  }
  removeOld(folder)
  return folder
}

type File = readonly [path: string, content: string | Uint8Array]

/** Makes the files ES modules: without it Node parses each as CommonJS first, a twentieth of the CPU of a start. */
const packageFile: File = ['package.json', '{ "type": "module" }\n']

/** One for each script: with parts in common there would be a file for each set of scripts that has them. */
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

/** A module that imports the script, and before it what tests load into every gateway. */
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
 * A gateway collects all garbage before it listens, so that it needs less memory from then on: a quarter of the CPU of a start, for
 * processes that live for seconds. Those that start from the sources do it.
 */
const withoutFirstCollection: Plugin = {
  name: 'without first collection',
  resolveId: (id, importer) =>
    importer === join(root, 'proxy/app/start.ts') && id.endsWith('/v8-gc.ts')
      ? join(root, noCollection)
      : undefined,
}

/** What a module looks up beside itself, such as the files of a page or the code of a thread, is beside its source. */
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

/** Has `startScript` start the bundles of the scripts that it names, which are beside its own. */
function withBundledPaths(code: string): string {
  return bundledScripts.reduce(
    (text, script) => text.replaceAll(`'${script}'`, `'${bundledPath('', script)}'`),
    code.replaceAll('import.meta.dirname', "(import.meta.dirname + '/..')"),
  )
}

/** Several runs may write the same bundle at the same time. */
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
