import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atEnd } from '../run/at-end.ts'
import { findProgram, installDebianPackages } from '../run/packages.ts'
import { freePort } from '../network/ports.ts'

/** A Redis that a test has started, as a process or as a container. */
export type RedisServer = {
  readonly url: string
  readonly port: number
  /** The server's process id on this system or, with an engine in a virtual machine, in that machine. */
  readonly pid: number
  /** Sends the server a signal: SIGSTOP hangs it, SIGCONT wakes it, SIGKILL is a crash. */
  signal(signal: NodeJS.Signals): Promise<void>
  /** Ends the server at once, no matter what state it is in, and removes its files. */
  stop(): Promise<void>
}

export type RedisServerOptions = {
  /** Options of redis-server, such as `['--maxmemory', '1mb']`; they override the usual ones. */
  readonly args?: readonly string[]
  /** The port to listen on, for a server that replaces another; a free port unless given. */
  readonly port?: number
}

/** No persistence, and a database for each of many workers of vitest. */
export const commonArgs = ['--save', '', '--appendonly', 'no', '--databases', '128']

const running = new Set<ChildProcess>()
atEnd(() => {
  for (const child of running) child.kill('SIGKILL')
})

/** The server that `REDIS_SERVER` names: another Redis or Valkey, for all tests that start one. */
export const givenRedisBinary = process.env['REDIS_SERVER'] || undefined

/** The path of a Redis server. If it is missing, installs Debian's package where possible. */
export function obtainRedisBinary(): string | undefined {
  if (givenRedisBinary !== undefined) return givenRedisBinary
  const found = findProgram('redis-server')
  if (found !== undefined) return found
  installDebianPackages(['redis-server'])
  return findProgram('redis-server')
}

/** Starts the binary and waits until it accepts connections. Rejects with its output if it does not start. */
export async function launchRedisServer(
  binary: string,
  options: RedisServerOptions = {},
): Promise<RedisServer> {
  const port = options.port ?? (await freePort())
  const directory = await mkdtemp(join(tmpdir(), 'sluice-redis-'))
  const place = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory]
  const child = spawn(binary, [...place, ...commonArgs, ...(options.args ?? [])], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  running.add(child)
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => {
      running.delete(child)
      resolve()
    })
  })
  const pid = await ready(child, ended)

  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    pid,
    signal: (signal) => {
      child.kill(signal)
      return signal === 'SIGKILL' ? ended : Promise.resolve()
    },
    stop: async () => {
      child.kill('SIGKILL')
      await ended
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** Resolves with the server's process id once it reports that it accepts connections. */
function ready(child: ChildProcess, ended: Promise<void>): Promise<number> {
  return new Promise((resolve, reject) => {
    let output = ''
    child.once('error', reject)
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      // Later output is read too, or the pipe would fill up and block the server.
      if (output.length < 100_000) output += text
      if (child.pid !== undefined && output.includes('Ready to accept connections')) resolve(child.pid)
    })
    void ended.then(() => reject(new Error(`redis-server ended before it was ready:\n${output}`)))
  })
}
