import { canConnect, freePort } from '../support/network/ports.ts'
import { spawnCommand, spawnNode, type NodeProcess } from '../support/gateway/process.ts'
import { eventually } from '../support/wait/eventually.ts'

/** Time for an application to start on a busy machine. */
const START_TIMEOUT_MS = 90_000

/** Starts one of `servers/`, which reads its port from the environment and reports when it listens. Returns the port. */
export async function startNodeServer(name: string, env: Record<string, string> = {}): Promise<number> {
  const port = await freePort()
  const server = spawnNode(`test/apps/servers/${name}`, { PORT: String(port), ...env })
  await server.waitForLine(/listening/, START_TIMEOUT_MS)
  return port
}

type ServerOptions = {
  readonly ready: RegExp
  readonly env?: Record<string, string>
  readonly cwd?: string
}

/**
 * Starts any program with the port passed to `args`, and waits for a line of its output.
 *
 * @returns the port
 */
export async function startServer(
  program: string,
  args: (port: number) => readonly string[],
  options: ServerOptions,
): Promise<number> {
  const { port } = await startServerProcess(program, args, options)
  return port
}

/** Does what `startServer` does, for a program that must be stopped before the end of the file. */
export async function startServerProcess(
  program: string,
  args: (port: number) => readonly string[],
  options: ServerOptions,
): Promise<{ port: number; process: NodeProcess }> {
  const port = await freePort()
  const place = options.cwd === undefined ? {} : { cwd: options.cwd }
  const server = spawnCommand(program, options.env, args(port), place)
  await server.waitForLine(options.ready, START_TIMEOUT_MS)
  // Some programs report this just before they listen.
  await eventually('the port of the application is open', () => canConnect(port), { endMs: START_TIMEOUT_MS })
  return { port, process: server }
}
