/*
 * Runs an entry of this repository in this process: `node scripts/run.js proxy/main.ts`. The npm scripts use it because the entries are
 * TypeScript, for which an old Node only reports a syntax error. An old Node can read this file.
 *
 * The scripts in package.json are written as `exec node …`, so that there is no shell between npm and this process that would die of a
 * signal without forwarding it. `exec node … || node …` would not work, because npm appends the arguments to the last command, which would
 * not run. Windows' shell has no `exec`; it runs exec.cmd in the root folder, which it searches first.
 */
import module from 'node:module'
import { fileURLToPath } from 'node:url'

const MIN_NODE_MAJOR = 24

const [, , entry, ...rest] = process.argv
const version = process.versions.node
if (Number.parseInt(version, 10) < MIN_NODE_MAJOR) {
  fail(
    `Node.js ${MIN_NODE_MAJOR} or later is needed, and this is ${version} (${process.execPath}): "npm ci" brings one, ` +
      'unless it leaves out development dependencies or install scripts',
  )
} else {
  // Cache the compiled sources for the next start. Without the cache, every process keeps the compiler that strips types in memory, some 25
  // MB. Node's default directory is not used, because all users of a machine share it. If the directory cannot be written, the gateway
  // starts without a cache.
  if (!module.getCompileCacheDir()) {
    const directory = fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url))
    module.enableCompileCache(directory)
    // For child processes.
    process.env.NODE_COMPILE_CACHE = directory
  }
  const url = new URL(`../${entry}`, import.meta.url)
  // The entry finds its arguments, and workers find the entry, as if Node had run the entry itself.
  process.argv = [process.argv[0], fileURLToPath(url), ...rest]
  import(url.href).catch((error) => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND' || !/^Cannot find package/.test(error.message)) throw error
    fail(`${error.message.split(' imported from')[0]}: run "npm ci" first`)
  })
}

function fail(message) {
  process.stderr.write(`${message}\n`)
  process.exitCode = 1
}
