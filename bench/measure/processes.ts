import { execFile, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { atEnd } from '../../test/support/run/at-end.ts'

/** A server of the benchmark, including all processes that it has started. */
export type Running = {
  readonly pid: number
  /** The last output. */
  output(): string
  /** Resolves when the process has ended, even if it had to be killed. */
  stop(): Promise<void>
}

export type Command = {
  readonly program: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly directory?: string
}

const startTimeoutMs = 60_000
const stopTimeoutMs = 5_000
const outputKept = 4_000

const running = new Set<ChildProcess>()

atEnd(() => {
  for (const child of running) {
    for (const pid of listOutsiders(child)) kill(pid, 'SIGKILL')
    killGroup(child)
    child.kill('SIGKILL')
  }
})

/** Runs a program until it or the benchmark ends, and resolves with its output. Rejects if it fails or exceeds its time limit. */
export async function runProgram(
  program: string,
  args: readonly string[],
  timeoutMs: number,
): Promise<string> {
  const run = promisify(execFile)(program, args, { timeout: timeoutMs })
  running.add(run.child)
  try {
    return (await run).stdout
  } finally {
    running.delete(run.child)
  }
}

/**
 * Starts a server in its own process group and waits until it accepts connections. Rejects with its last output if it ends before that. The
 * group ends with the benchmark, however that ends.
 */
export async function startServer(command: Command, port: number): Promise<Running> {
  const { program, args, env, directory } = command
  const child = spawn(program, args, {
    cwd: directory,
    // Passes on nothing else from the caller's environment, so that a run is the same everywhere.
    env: { PATH: process.env['PATH'] ?? '', NODE_ENV: 'production', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  running.add(child)

  let output = ''
  const keep = (text: string): void => {
    output = (output + text).slice(-outputKept)
  }
  child.stdout.setEncoding('utf8').on('data', keep)
  child.stderr.setEncoding('utf8').on('data', keep)

  let failure: Error | undefined
  const ended = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      failure = error
      resolve()
    })
    child.once('close', () => {
      failure ??= new Error(`${[program, ...args].join(' ')} ended:\n${output}`)
      running.delete(child)
      resolve()
    })
  })

  const deadline = performance.now() + startTimeoutMs
  while (!(await canConnect(port))) {
    if (failure) throw failure
    if (performance.now() > deadline) {
      killGroup(child)
      throw new Error(`${program} did not listen on port ${port} in time:\n${output}`)
    }
    await sleep(20)
  }
  // If the process could not take the port, it may have ended while another process answered on that port.
  if (child.pid === undefined || child.exitCode !== null) throw failure ?? new Error(`${program} ended`)

  return {
    pid: child.pid,
    output: () => output,
    async stop() {
      const outsiders = listOutsiders(child)
      child.kill('SIGTERM')
      for (const pid of outsiders) kill(pid, 'SIGTERM')
      const timer = setTimeout(() => {
        killGroup(child)
        for (const pid of outsiders) kill(pid, 'SIGKILL')
      }, stopTimeoutMs)
      await ended
      clearTimeout(timer)
      killGroup(child)
    },
  }
}

function killGroup({ pid }: ChildProcess): void {
  if (pid !== undefined) kill(-pid, 'SIGKILL')
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended already.
  }
}

/**
 * The processes that a process has started, and their descendants, that have left its group: php-fpm begins its own session. They would
 * keep running, and their output would keep the server from ending.
 */
function listOutsiders({ pid: root }: ChildProcess): readonly number[] {
  if (root === undefined) return []
  const { stdout } = spawnSync('ps', ['-eo', 'pid=,ppid=,pgid='], { encoding: 'utf8' })
  const rows = stdout.split('\n').map((line) => line.trim().split(/\s+/).map(Number))
  const tree = new Set([root])
  for (let before = 0; before < tree.size;) {
    before = tree.size
    for (const [pid = NaN, parent = NaN] of rows) if (tree.has(parent)) tree.add(pid)
  }
  return rows.flatMap(([pid = NaN, , group]) => (tree.has(pid) && group !== root ? [pid] : []))
}

function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
