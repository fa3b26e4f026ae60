import { spawn, spawnSync } from 'node:child_process'
import { createWriteStream, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { atEnd } from '../support/run/at-end.ts'
import type { RunResult } from './failures-reporter.ts'

/** One step of a tier. */
export type Step = {
  readonly name: string
  /** The shell command. */
  readonly command: string
  /** For a vitest step: the arguments to `command` that select its tests. */
  readonly tests?: string
  readonly env?: Readonly<Record<string, string>>
  /** The step is killed after this time, and fails. */
  readonly limitMinutes: number
  /** Consecutive steps of one group run in parallel. Such a step measures no time, and uses one core. */
  readonly group?: string
}

export type Outcome = {
  readonly step: Step
  readonly ok: boolean
  readonly seconds: number
  /** Path of the step's output. */
  readonly log: string
  /** The end of the output. */
  readonly lastLines: readonly string[]
  /** The result of a vitest step, as far as it ran. */
  readonly tests?: RunResult
}

/** Lines to show on the last page for a step without tests. */
const SHOWN_LINES = 7

/** Time for a step that takes too long to remove its containers. */
const LAST_WORDS_MS = 20_000

const running = new Set<number>()
atEnd(() => {
  running.forEach(endStep)
  running.clear()
})

/** Groups consecutive steps of the same group; every other step runs alone. */
export function inGroups(steps: readonly Step[]): Step[][] {
  const groups: Step[][] = []
  for (const step of steps) {
    const last = groups.at(-1)
    if (step.group !== undefined && last?.[0]?.group === step.group) last.push(step)
    else groups.push([step])
  }
  return groups
}

/**
 * Runs a step to its end, in success or failure. Prints its output, and keeps it in the folder `results`.
 *
 * @param isAlone if false, the output is printed at the end, because other steps print meanwhile
 */
export async function runStep(step: Step, results: string, isAlone = true): Promise<Outcome> {
  mkdirSync(results, { recursive: true })
  const path = join(results, step.name.replaceAll(/[^A-Za-z0-9.]+/g, '-'))
  const failuresFile = `${path}.json`
  rmSync(failuresFile, { force: true })
  const log = `${path}.log`
  const startedMs = performance.now()
  const status = await runCommand(step, log, failuresFile, isAlone)
  if (!isAlone) process.stdout.write(readFileSync(log))
  const lines = stripVTControlCharacters(readFileSync(log, 'utf8')).split('\n')
  const lastLines = lines.filter((line) => line.trim() !== '').slice(-SHOWN_LINES)
  return {
    step,
    ok: status === 0,
    seconds: (performance.now() - startedMs) / 1000,
    log,
    lastLines: status === undefined ? [`killed after ${step.limitMinutes} minutes`, ...lastLines] : lastLines,
    ...(existsSync(failuresFile) && { tests: JSON.parse(readFileSync(failuresFile, 'utf8')) as RunResult }),
  }
}

/** @returns the exit status, or undefined if it took too long */
function runCommand(
  step: Step,
  log: string,
  failuresFile: string,
  isShown: boolean,
): Promise<number | undefined> {
  const child = spawn('bash', ['-c', [step.command, step.tests].filter(Boolean).join(' ')], {
    // In its own process group, so that all its children can be killed with it.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      ...step.env,
      ...(step.tests !== undefined && { FAILURES_FILE: failuresFile, TEST_RUNNER: step.command }),
    },
  })
  const { pid } = child
  // It cannot be started. Process 0 would be the parent of all.
  if (pid === undefined) return new Promise((_, reject) => child.once('error', reject))
  running.add(pid)
  const kept = createWriteStream(log)
  const show = (piece: Buffer): void => {
    if (isShown) process.stdout.write(piece)
    kept.write(piece)
  }
  child.stdout.on('data', show)
  child.stderr.on('data', show)
  return new Promise((resolve, reject) => {
    let tookTooLong = false
    const timer = setTimeout(() => {
      tookTooLong = true
      endStep(pid)
      setTimeout(() => killGroup(pid), LAST_WORDS_MS).unref()
    }, step.limitMinutes * 60_000)
    child.once('error', reject)
    child.once('exit', () => {
      // Processes that it left behind would keep its output open.
      setTimeout(() => killGroup(pid), 2_000).unref()
    })
    child.once('close', (status, signal) => {
      clearTimeout(timer)
      running.delete(pid)
      kept.end(() => resolve(tookTooLong ? undefined : (status ?? (signal === null ? 0 : 1))))
    })
  })
}

/** Ends a step by SIGTERM, so that its programs can remove their containers and folders. */
function endStep(pid: number): void {
  // Gateways of tests have groups of their own, and a worker of vitest may be killed before it has killed them.
  const others = groupsBelow(pid)
  killGroup(pid, 'SIGTERM')
  for (const other of others) killGroup(other)
}

/** Returns the process groups of all descendants of a process, without its own group. */
function groupsBelow(pid: number): Set<number> {
  const { stdout, error } = spawnSync('ps', ['-eo', 'pid=,ppid=,pgid='], { encoding: 'utf8' })
  // Slim images do not have it.
  if (error) return new Set()
  const processes = stdout.split('\n').map((line) => line.trim().split(/\s+/).map(Number))
  const parents = new Set([pid])
  const groups = new Set<number>()
  // The loop also reaches the children that it adds.
  for (const parent of parents)
    for (const [child = 0, of, group = 0] of processes)
      if (of === parent) {
        parents.add(child)
        if (group !== pid) groups.add(group)
      }
  return groups
}

function killGroup(pid: number, signal: NodeJS.Signals = 'SIGKILL'): void {
  try {
    process.kill(-pid, signal)
  } catch {
    // It has ended already.
  }
}
