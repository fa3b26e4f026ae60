import { spawn, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { atEnd } from '../support/run/at-end.ts'
import { gatewayOptions } from '../../shared/v8-gc.ts'

/** A script of this repository that runs in its own process and writes lines of JSON. */
export type Worker = {
  readonly pid: number
  /** Resolves with the match in one of the lines written from now on. Rejects when the process ends. */
  waitFor<Found>(find: (line: string) => Found | undefined): Promise<Found>
  /** Resolves with the next line. */
  nextLine(): Promise<string>
  /** Takes a number of lines, one after another. */
  takeLines(count: number): Promise<string[]>
  /** Calls the listener for each line written from now on. */
  onLine(listener: (line: string) => void): void
  stop(): void
}

const repositoryRoot = join(import.meta.dirname, '../..')
const running = new Set<ChildProcess>()

atEnd(() => {
  for (const child of running) child.kill('SIGKILL')
})

/** Starts a gateway as in production. */
export function startGateway(env: Readonly<Record<string, string>>): Worker {
  return startWorker('proxy/main.ts', [], env, gatewayOptions)
}

/** Resolves with the ports of a started gateway, from the log line that names them. Warnings may precede that line. */
export function readPorts(gateway: Worker): Promise<{ readonly port: number; readonly adminPort: number }> {
  return gateway.waitFor((text) => {
    const { port, adminPort } = JSON.parse(text) as { port?: number; adminPort?: number }
    return port === undefined || adminPort === undefined ? undefined : { port, adminPort }
  })
}

export function startWorker(
  script: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
  nodeOptions: readonly string[] = [],
): Worker {
  const child = spawn(process.execPath, [...nodeOptions, join(repositoryRoot, script), ...args], {
    cwd: repositoryRoot,
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  running.add(child)
  const lines = createInterface({ input: child.stdout })
  const waitFor = <Found>(find: (line: string) => Found | undefined): Promise<Found> =>
    new Promise((resolve, reject) => {
      const settle = (): void => {
        lines.off('line', look)
        lines.off('close', end)
      }
      const look = (line: string): void => {
        const found = find(line)
        if (found === undefined) return
        settle()
        resolve(found)
      }
      const end = (): void => {
        settle()
        reject(new Error(`${script} has ended`))
      }
      lines.on('line', look)
      lines.on('close', end)
    })
  return {
    pid: child.pid ?? 0,
    waitFor,
    nextLine: () => waitFor((line) => line),
    takeLines(count) {
      const taken: string[] = []
      return waitFor((line) => (taken.push(line) === count ? taken : undefined))
    },
    onLine: (listener) => void lines.on('line', listener),
    stop() {
      running.delete(child)
      child.kill('SIGKILL')
    },
  }
}

/** Resident memory of a process: `VmRSS` of proc_pid_status(5). */
export function readResidentMib(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) / 1024
}

/** Seconds of CPU time that a process has used: `utime` and `stime` of proc_pid_stat(5), in hundredths. */
export function readProcessorSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** The maximum number of open files of this process and its children. */
export function readFileLimit(): number {
  return Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1])
}
