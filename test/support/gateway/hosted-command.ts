import { atEndOfFile } from '../run/at-end.ts'
import { send } from './gateway.ts'
import { spawnNode, type Finished } from './process.ts'
import { makeTemporaryDirectory } from '../run/temporary-directory.ts'

export type HostedCommand = {
  readonly args: readonly string[]
  readonly env: Record<string, string>
  readonly cwd: string
}

let host: Promise<number> | undefined

// The process itself ends with the file, as all child processes do.
atEndOfFile(() => (host = undefined))

async function startHost(): Promise<number> {
  const started = spawnNode('test/support/gateway/command-host.ts')
  const [, port] = await started.waitForLine(/^port (\d+)$/)
  return Number(port)
}

/**
 * Runs `sluice` with these arguments in a process that all commands of the test file share, which takes a twentieth of the time of a new
 * process. Not for `run`, standard input and tests of the process itself.
 *
 * @param env the whole environment
 */
export async function runHosted(
  args: readonly string[],
  env: Record<string, string> = {},
  cwd = makeTemporaryDirectory(),
): Promise<Finished> {
  const command: HostedCommand = { args, env, cwd }
  const reply = await send(await (host ??= startHost()), 'POST', '/', { body: JSON.stringify(command) })
  if (reply.status !== 200) throw new Error(`the command failed: ${reply.body}`)
  return JSON.parse(reply.body) as Finished
}
