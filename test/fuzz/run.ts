import { spawn } from 'node:child_process'
import { cpSync, globSync, mkdirSync, mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { installNpmPackages } from '../support/run/packages.ts'

// Coverage-guided fuzzing of the parsers, with jsfuzz: `npm run fuzz:coverage -- 600 requests frames` runs each target for 600 seconds
// (default: 60 seconds, all targets). Inputs for which a target throws are copied to test/fuzz/crashes/TARGET, and
// `test/property/fuzz-corpus.test.ts` runs the targets on them and on the corpus.

const here = import.meta.dirname
const [seconds = '60', ...named] = process.argv.slice(2)
const targets = readdirSync(join(here, 'targets')).map((file) => basename(file, '.ts'))
const unknown = named.filter((name) => !targets.includes(name))
if (unknown.length > 0 || !(Number(seconds) > 0)) {
  console.error(`usage: npm run fuzz:coverage -- [SECONDS] [${targets.join('|')}]…`)
  process.exit(2)
}

installNpmPackages(here)
const { build } = (await import(join(here, 'node_modules/rolldown/dist/index.mjs'))) as {
  build: (options: object) => Promise<unknown>
}

let found = 0
for (const target of named.length > 0 ? named : targets) {
  const scratch = mkdtempSync(join(tmpdir(), `fuzz-${target}-`))
  // jsfuzz instruments modules loaded with `require`.
  await build({
    input: join(here, 'targets', `${target}.ts`),
    platform: 'node',
    output: { file: join(scratch, 'target.cjs'), format: 'cjs' },
    logLevel: 'silent',
  })
  // jsfuzz adds each input with new coverage to the corpus that it is given.
  const corpus = join(scratch, 'corpus')
  cpSync(join(here, 'corpus', target), corpus, { recursive: true })
  const before = readdirSync(corpus).length

  const jsfuzz = join(here, 'node_modules/jsfuzz/build/src/index.js')
  const child = spawn(
    process.execPath,
    [jsfuzz, 'target.cjs', 'corpus', '--timeout', '60', '--no-versifier'],
    {
      cwd: scratch,
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  let last = ''
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
    last = [...output.matchAll(/^#.*$/gm)].at(-1)?.[0] ?? last
    output = output.slice(-20_000)
  })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  await Promise.race([ended, wait(Number(seconds) * 1000)])
  const { pid } = child
  try {
    if (pid) process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended by itself after a crash.
  }
  await ended

  const crashes = globSync('crash-*', { cwd: scratch })
  console.log(
    `${target}: ${last.trim()}; ${readdirSync(corpus).length - before} inputs covered something new`,
  )
  if (crashes.length === 0) continue
  found += crashes.length
  const kept = join(here, 'crashes', target)
  mkdirSync(kept, { recursive: true })
  for (const crash of crashes) cpSync(join(scratch, crash), join(kept, crash))
  console.log(`${output}\nkept in ${kept}: ${crashes.join(', ')}`)
}
process.exitCode = found > 0 ? 1 : 0
