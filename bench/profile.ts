import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import {
  functionsOn,
  layerOf,
  nearestFile,
  nearestFunction,
  readStacks,
  sharesBy,
  sharesByMany,
  type Share,
} from './measure/perf-samples.ts'
import { installNpmPackages } from '../test/support/run/packages.ts'
import { scenarios } from './scenarios.ts'
import { openStage } from './measure/stage.ts'
import { validateBefore } from './measure/validate.ts'
import { load, warmUp, type Loaded } from './measure/load.ts'

// Shows where a subject on Node spends its time, with perf(1) and strace(1):
//
//     npm run bench:profile -- --scenario limited --subject sluice
//
// This uses perf instead of V8's own profiler, because most of the time is spent below JavaScript, and because that profiler samples by
// wall time: it charges the time in which a thread waits for a core to the system call that was interrupted.

const warmupRequests = 40_000
const samplesPerSecond = 2_999
const shown = 45

const { values } = parseArgs({
  options: {
    scenario: { type: 'string', default: 'pass' },
    subject: { type: 'string', default: 'sluice' },
    seconds: { type: 'string', default: '4' },
    connections: { type: 'string', default: '64' },
  },
})
const scenario = scenarios.find(({ name }) => name === values.scenario)
const subject = scenario?.subjects.find(({ name }) => name === values.subject)
if (!scenario || !subject) throw new Error(`${values.scenario} has no subject ${values.subject}`)

const connections = Number(values.connections)

installNpmPackages(import.meta.dirname)
const directory = mkdtempSync(join(tmpdir(), 'sluice-profile-'))
const data = join(directory, 'perf.data')
const stage = await openStage(connections)
try {
  await stage.withSubject(
    subject,
    scenario,
    async ({ pid, port }) => {
      const { path, protocol, script } = scenario
      const target = { port, path, protocol, script, connections }
      const loadFor = (seconds: number): Promise<Loaded> => load({ ...target, seconds })
      await validateBefore(scenario, subject, port)
      await warmUp(target, warmupRequests)
      await record(pid, () => loadFor(Number(values.seconds)))
      printProfile(readStacks(perf('script', '-i', data, '-F', 'comm,ip,sym,dso')))
      process.stdout.write(`\nsystem calls a request\n${await countSystemCalls(pid, () => loadFor(1))}\n`)
    },
    ['--perf-basic-prof'],
  )
} finally {
  await stage.close()
  rmSync(directory, { recursive: true })
}

function perf(...args: string[]): string {
  return execFileSync('perf', args, {
    encoding: 'utf8',
    maxBuffer: 2 ** 30,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

/** Samples by CPU time, so that waits do not count. */
async function record(pid: number, load: () => Promise<unknown>): Promise<void> {
  const args = [
    'record',
    '-e',
    'cpu-clock',
    '-F',
    String(samplesPerSecond),
    '-g',
    '-o',
    data,
    '-p',
    String(pid),
  ]
  const recorder = spawn('perf', args, { stdio: 'ignore' })
  const closed = once(recorder, 'close')
  await sleep(300)
  await load()
  recorder.kill('SIGINT')
  await closed
}

function printProfile(stacks: ReturnType<typeof readStacks>): void {
  const print = (title: string, shares: readonly Share[]): void => {
    process.stdout.write(`\n${title}\n  all %  kernel %\n`)
    for (const { name, share, kernelShare } of shares.slice(0, shown)) {
      const [all, kernel] = [share, kernelShare].map((part) => (part * 100).toFixed(1))
      process.stdout.write(`${all?.padStart(7) ?? ''}  ${kernel?.padStart(8) ?? ''}  ${name}\n`)
    }
  }
  process.stdout.write(`${values.subject}, ${values.scenario}: ${stacks.length} samples\n`)
  print('what ran', sharesBy(stacks, layerOf))
  print('functions, with what they call below JavaScript', sharesBy(stacks, nearestFunction))
  print('files, in the same way', sharesBy(stacks, nearestFile))
  print('functions, with all that they call', sharesByMany(stacks, functionsOn))
}

/** strace slows down the process that it traces, so only the counts are meaningful. */
async function countSystemCalls(pid: number, load: () => Promise<Loaded>): Promise<string> {
  const strace = spawn('strace', ['-c', '-f', '-p', String(pid)], { stdio: ['ignore', 'ignore', 'pipe'] })
  let table = ''
  strace.stderr.setEncoding('utf8').on('data', (text: string) => (table += text))
  const closed = once(strace, 'close')
  await sleep(500)
  const { requests } = await load()
  strace.kill('SIGINT')
  await closed
  const rows = [...table.matchAll(/^ *[\d.]+ +[\d.]+ +\d+ +(\d+)(?: +\d+)? +(\w+)$/gm)]
  return rows
    .map(([, calls, name]): [string, number] => [name ?? '', Number(calls) / requests])
    .filter(([name, calls]) => name !== 'total' && calls >= 0.005)
    .sort(([, a], [, b]) => b - a)
    .map(([name, calls]) => `${calls.toFixed(2).padStart(8)}  ${name}`)
    .join('\n')
}
