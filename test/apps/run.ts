import { spawnCommand } from '../support/gateway/process.ts'

/** Runs a client until it ends and returns its standard output. Rejects, with all its output, if it does not end with status 0 in time. */
export async function run(
  command: readonly [program: string, ...args: string[]],
  options: { readonly env?: Record<string, string>; readonly cwd?: string; readonly timeoutMs?: number } = {},
): Promise<string> {
  const [program, ...args] = command
  const { timeoutMs = 100_000 } = options
  const client = spawnCommand(
    program,
    options.env,
    args,
    options.cwd === undefined ? {} : { cwd: options.cwd },
  )
  const deadlineMs = performance.now() + timeoutMs
  const timer = setTimeout(() => client.child.kill('SIGKILL'), timeoutMs)
  const status = await client.exit
  clearTimeout(timer)
  if (status === 0) return client.stdout()
  const timedOut = performance.now() >= deadlineMs
  const why = timedOut ? `did not end in ${timeoutMs} ms` : `ended with status ${status}`
  throw new Error(`${command.join(' ')}: ${why}\n${client.output()}`)
}
