import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { atEnd, atEndOfFile } from '../run/at-end.ts'
import { freePort } from '../network/ports.ts'
import { obtainRedisBinary } from './redis-server.ts'
import { makeTemporaryDirectory } from '../run/temporary-directory.ts'

export type Sentinel = {
  readonly port: number
  signal(signal: NodeJS.Signals): void
  /** Ends the process at once, no matter what state it is in. */
  stop(): Promise<void>
}

const running = new Set<ChildProcess>()
const killAll = (): void => {
  for (const child of running) child.kill('SIGKILL')
}
atEndOfFile(killAll)
atEnd(killAll)

/**
 * Starts a sentinel that monitors the master at a port under the name `main`. It is ended after the file's last test.
 *
 * @param options.quorum how many sentinels have to agree that the master is down
 * @param options.lines further lines of its configuration, which may set the port too
 * @throws Error with its output if it does not start
 */
export async function startSentinel(options: {
  readonly masterPort: number
  readonly quorum?: number
  readonly lines?: readonly string[]
  readonly port?: number
}): Promise<Sentinel> {
  const binary = obtainRedisBinary()
  if (binary === undefined) throw new Error('Sentinel needs redis-server on this machine')
  const port = options.port ?? (await freePort())
  // Sentinel writes its findings into its configuration file.
  const file = join(makeTemporaryDirectory(), 'sentinel.conf')
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `sentinel monitor main 127.0.0.1 ${options.masterPort} ${options.quorum ?? 1}`,
    ...(options.lines ?? []),
  ]
  await writeFile(file, lines.join('\n') + '\n')
  const child = spawn(binary, [file, '--sentinel'], { stdio: ['ignore', 'pipe', 'inherit'] })
  running.add(child)
  const ended = once(child, 'close').then(() => void running.delete(child))
  await untilWatching(child, ended)
  return {
    port,
    signal: (signal) => void child.kill(signal),
    stop: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}

function untilWatching(child: ChildProcess, ended: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    let output = ''
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      if (output.length < 100_000) output += text
      if (output.includes('+monitor')) resolve()
    })
    void ended.then(() => reject(new Error(`the sentinel ended before it was ready:\n${output}`)))
  })
}
