/*
 * Runs an entry of this repository: `node scripts/run.js proxy/main.ts`, in this very process. The npm scripts do so because the
 * entries are TypeScript, of which an old Node can only say that it has a syntax error: this file is one that it can read.
 *
 * In package.json they are written `exec node …`, so that no shell stands between npm and this process, to die of a signal
 * without passing it on. Not `exec node … || node …`: npm puts the arguments behind the last command, which would not run.
 * Windows' shell has no `exec`: there it is exec.cmd, in the root folder, where that shell looks first.
 */
import module from 'node:module'
import { fileURLToPath } from 'node:url'

const oldestMajor = 24

const [, , entry, ...rest] = process.argv
const version = process.versions.node
if (Number.parseInt(version, 10) < oldestMajor) {
  fail(
    `Node.js ${oldestMajor} or later is needed, and this is ${version} (${process.execPath}): "npm ci" brings one, ` +
      'unless it leaves out development dependencies or install scripts',
  )
} else {
  // What Node makes of the sources is kept for the next start: without it every process holds the compiler that takes the
  // types out, some 25 MB, for as long as it runs. Not in the directory that Node would choose, which is one for all users
  // of a machine. If it cannot be written, the start is as it would be without.
  if (!module.getCompileCacheDir()) {
    const directory = fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url))
    module.enableCompileCache(directory)
    // For the processes that this one starts.
    process.env.NODE_COMPILE_CACHE = directory
  }
  const url = new URL(`../${entry}`, import.meta.url)
  // The entry finds its arguments, and workers find the entry, as if it had been run without this file.
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
