import { existsSync } from 'node:fs'
import { get } from 'node:http'
import { ImageName, getContainerRuntimeClient, type ContainerRuntimeClient } from 'testcontainers'

export type Engine = ContainerRuntimeClient
/** What `docker inspect` shows of a container. */
export type ContainerDetails = Awaited<ReturnType<Engine['container']['inspect']>>

// Ryuk is one more image to pull before anything can start. The tests stop what they start, so they do not need it.
process.env['TESTCONTAINERS_RYUK_DISABLED'] ??= 'true'

/**
 * The container engine of this machine, or undefined if no engine answers in time.
 *
 * @param timeoutMs bounds the wait, as the socket may exist although no engine is running
 */
export async function findEngine(timeoutMs: number): Promise<Engine | undefined> {
  const socketPath = (process.env['DOCKER_HOST'] ?? 'unix:///var/run/docker.sock').match(
    /^unix:\/\/(.+)$/,
  )?.[1]
  // Checks first, because a request of the client library cannot be cancelled and keeps the process from ending.
  if (socketPath && existsSync(socketPath) && !(await answers(socketPath, timeoutMs))) return undefined
  return within(timeoutMs, getContainerRuntimeClient())
}

/** The container engine of this machine; rejects if no engine answers. */
export async function requireEngine(): Promise<Engine> {
  const engine = await findEngine(10_000)
  if (!engine) throw new Error('The container tests need a container engine that answers, such as Docker.')
  return engine
}

/**
 * Pulls the image if it is missing. Returns whether the engine has it then.
 *
 * @param pullTimeoutMs bounds the pull, which may hang instead of failing if the registry is unreachable
 */
export async function obtainImage(engine: Engine, image: string, pullTimeoutMs: number): Promise<boolean> {
  const name = ImageName.fromString(image)
  if (await engine.image.exists(name)) return true
  await within(pullTimeoutMs, engine.image.pull(name))
  return engine.image.exists(name)
}

/** The user ids of all the container's processes, as the engine sees them. Runs no program of the image. */
export async function userIdsOf(engine: Engine, containerId: string): Promise<string[]> {
  const table: unknown = await engine.container.getById(containerId).top({ ps_args: '-eo uid,pid' })
  const { Processes } = table as { Processes: string[][] }
  return Processes.map(([userId = '']) => userId)
}

/** What the container's process has written so far to both streams. */
export async function logOf(engine: Engine, containerId: string): Promise<string> {
  const log = await engine.container.getById(containerId).logs({ stdout: true, stderr: true, follow: false })
  return log.toString()
}

function answers(socketPath: string, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get(
      { socketPath, path: '/_ping', signal: AbortSignal.timeout(timeoutMs) },
      (response) => {
        response.resume()
        resolve(response.statusCode === 200)
      },
    )
    request.once('error', () => resolve(false))
  })
}

/** The promise's value, or undefined if it rejects or takes longer than the timeout. */
async function within<T>(timeoutMs: number, promise: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<undefined>((resolve) => {
    // A timeout, not a sleep.
    timer = setTimeout(() => resolve(undefined), timeoutMs)
  })
  try {
    return await Promise.race([promise.catch(() => undefined), timeout])
  } finally {
    clearTimeout(timer)
  }
}
