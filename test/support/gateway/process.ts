import { spawn, type ChildProcess } from 'node:child_process'
import { join, relative, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { atEnd, atEndOfFile } from '../run/at-end.ts'
import { BUNDLES, bundledPath, bundledScripts, gatewayScripts, poolCheck } from '../run/bundled-scripts.ts'
import { keepAfterFile } from '../leaks/resources.ts'
import { gatewayOptions } from '../../../shared/v8-gc.ts'

/** A Node process under test. Processes that it starts are in its process group and end with it. */
export type NodeProcess = {
  readonly child: ChildProcess
  /**
   * The first line that matches, written already or still to come, on standard output or standard error. Rejects, with all output in the
   * message, if the process ends or the timeout passes first.
   */
  waitForLine(pattern: RegExp, timeoutMs?: number): Promise<RegExpMatchArray>
  /** Both streams, in the order of arrival. */
  output(): string
  stdout(): string
  stderr(): string
  /** Resolves when the process has ended and its output is complete: 128 + the signal's number if a signal killed it. */
  readonly exit: Promise<number>
  /** Sends the signal to the process alone, SIGTERM unless told otherwise, and waits for its exit status. */
  stop(signal?: NodeJS.Signals): Promise<number>
}

export type SpawnOptions = {
  /** The repository's root unless given. */
  readonly cwd?: string
  /** The process serves other test files too: it is killed at the end of the process that runs them. */
  readonly staysAfterFile?: boolean
}

/** The exit status and output of a finished process. */
export type Finished = { readonly status: number; readonly stdout: string; readonly stderr: string }

const repositoryRoot = join(import.meta.dirname, '../../..')
const signalNumbers: Partial<Record<NodeJS.Signals, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGKILL: 9,
  SIGTERM: 15,
}
/** Each process with a promise of its end. */
type Children = Map<ChildProcess, Promise<unknown>>
const running: Children = new Map()
const staying: Children = new Map()
/** A process needs a second of CPU to start, and dozens of others may run beside it. Shorter than the time limit of a test. */
export const START_MS = 100_000
/** How long a killed process may take to disappear on a busy machine. */
const GONE_MS = 20_000

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // The group has ended already.
  }
}

// Their pipes stay open until the processes are gone.
atEndOfFile(async () => {
  if (running.size === 0) return
  for (const child of running.keys()) killGroup(child)
  const gone = new AbortController()
  const over = sleep(GONE_MS, undefined, { signal: gone.signal }).catch(() => undefined)
  await Promise.race([Promise.allSettled(running.values()), over])
  gone.abort()
})
atEnd(() => [...running.keys(), ...staying.keys()].forEach(killGroup))

function fromSources(path: string): string[] {
  const check = gatewayScripts.includes(path) ? ['--import', join(repositoryRoot, poolCheck)] : []
  return [...check, resolve(repositoryRoot, path)]
}

/**
 * Starts a script of this repository with the Node that runs the tests. If it still runs at the end of the test file, it is killed with all
 * processes that it started.
 *
 * @param script path from the repository's root, such as `origin/main.ts`, or an absolute one
 * @param env the whole environment except PATH and HOME, so that the developer's variables do not leak in
 */
export function spawnNode(
  script: string,
  env: Record<string, string> = {},
  args: readonly string[] = [],
  options: SpawnOptions = {},
): NodeProcess {
  // A file that NODE_OPTIONS loads patches modules of the sources.
  const command = commandOf(script, !env['NODE_OPTIONS']?.includes('file:'))
  return spawnCommand(process.execPath, { ...command.env, ...env }, [...command.args, ...args], options)
}

/** Returns arguments for Node that run a script of this repository as tests do, and variables that make it start sooner. */
export function commandOf(
  script: string,
  mayBeBundle = true,
): { readonly args: readonly string[]; readonly env: Record<string, string> } {
  // Whether the path is relative or absolute. Scripts of a changed copy of this repository are never bundled.
  const path = relative(repositoryRoot, resolve(repositoryRoot, script))
  const folder = mayBeBundle && bundledScripts.includes(path) ? process.env[BUNDLES] : undefined
  const nodeOptions = gatewayScripts.includes(path) ? gatewayOptions : []
  return {
    args: [...nodeOptions, ...(folder === undefined ? fromSources(path) : [bundledPath(folder, path)])],
    // Tests start hundreds of processes. With the compile cache of run.js, each later start costs half as much.
    env: { NODE_COMPILE_CACHE: join(folder ?? join(repositoryRoot, 'node_modules/.cache'), 'compiled') },
  }
}

/** Does what `spawnNode` does, but with any program. */
export function spawnCommand(
  program: string,
  env: Record<string, string> = {},
  args: readonly string[] = [],
  options: SpawnOptions = {},
): NodeProcess {
  const child = spawn(program, args, {
    cwd: options.cwd ?? repositoryRoot,
    env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const kept = options.staysAfterFile ? staying : running
  if (options.staysAfterFile) keepAfterFile(child, child.stdout, child.stderr)
  const command = [program, ...args].join(' ')

  let stdout = ''
  let stderr = ''
  let output = ''
  const waiting = new Set<() => void>()
  const wakeAll = (): void => waiting.forEach((wake) => wake())

  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    output += text
    wakeAll()
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
    output += text
    wakeAll()
  })

  let ended = false
  const exit = new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      ended = true
      kept.delete(child)
      resolve(code ?? 128 + ((signal && signalNumbers[signal]) ?? 0))
      wakeAll()
    })
  })
  kept.set(child, exit)

  const findLine = (pattern: RegExp): RegExpMatchArray | undefined => {
    for (const text of [stdout, stderr]) {
      // Text after the last line feed counts as a line only once the process has ended.
      const lines = text.split('\n').slice(0, ended ? undefined : -1)
      for (const line of lines) {
        const match = line.match(pattern)
        if (match) return match
      }
    }
    return undefined
  }

  return {
    child,
    exit,
    output: () => output,
    stdout: () => stdout,
    stderr: () => stderr,
    waitForLine: (pattern, timeoutMs = START_MS) =>
      new Promise((resolve, reject) => {
        const finish = (settle: () => void): void => {
          clearTimeout(timer)
          waiting.delete(look)
          settle()
        }
        const fail = (why: string): void =>
          finish(() =>
            reject(new Error(`${command}: ${why} before a line matched ${pattern}; output:\n${output}`)),
          )
        const look = (): void => {
          const match = findLine(pattern)
          if (match) finish(() => resolve(match))
          else if (ended) fail('ended')
        }
        const timer = setTimeout(() => fail(`${timeoutMs} ms passed`), timeoutMs)
        waiting.add(look)
        look()
      }),
    stop: (signal = 'SIGTERM') => {
      child.kill(signal)
      return exit
    },
  }
}

/** Runs a script to its end, for commands. Takes what `spawnNode` takes. */
export async function runNode(...parameters: Parameters<typeof spawnNode>): Promise<Finished> {
  const started = spawnNode(...parameters)
  const status = await started.exit
  return { status, stdout: started.stdout(), stderr: started.stderr() }
}
