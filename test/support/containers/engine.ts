import { existsSync } from 'node:fs'
import { get } from 'node:http'
import { ImageName, getContainerRuntimeClient, type ContainerRuntimeClient } from 'testcontainers'

export type Engine = ContainerRuntimeClient
/** What the engine tells of a container: `docker inspect`. */
export type ContainerDetails = Awaited<ReturnType<Engine['container']['inspect']>>

// One more image that would have to be pulled before anything can start. What the tests start, they also stop.
process.env['TESTCONTAINERS_RYUK_DISABLED'] ??= 'true'

/**
 * The container engine of this machine, or undefined where none answers in time.
 *
 * @param timeoutMs a socket may be there with nobody behind it, so the wait is bounded
 */
export async function findEngine(timeoutMs: number): Promise<Engine | undefined> {
  const socketPath = (process.env['DOCKER_HOST'] ?? 'unix:///var/run/docker.sock').match(
    /^unix:\/\/(.+)$/,
  )?.[1]
  // Asked here first, because a question of the client library cannot be taken back and keeps the process from ending.
  if (socketPath && existsSync(socketPath) && !(await answers(socketPath, timeoutMs))) return undefined
  return within(timeoutMs, getContainerRuntimeClient())
}

/** The container engine of this machine; rejects if there is none. */
export async function requireEngine(): Promise<Engine> {
  const engine = await findEngine(10_000)
  if (!engine) throw new Error('The container tests need a container engine that answers, such as Docker.')
  return engine
}

/**
 * Whether the engine has the image, after pulling it where it is missing.
 *
 * @param pullTimeoutMs where a registry cannot be reached, a pull may hang instead of failing
 */
export async function obtainImage(engine: Engine, image: string, pullTimeoutMs: number): Promise<boolean> {
  const name = ImageName.fromString(image)
  if (await engine.image.exists(name)) return true
  await within(pullTimeoutMs, engine.image.pull(name))
  return engine.image.exists(name)
}

/** The user ids of all the container's processes, as the engine sees them: nothing in the image is asked. */
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

/** The promise's value, or undefined where it rejects or the time is over first. */
async function within<T>(timeoutMs: number, promise: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<undefined>((resolve) => {
    // The end of a wait, not a sleep.
    timer = setTimeout(() => resolve(undefined), timeoutMs)
  })
  try {
    return await Promise.race([promise.catch(() => undefined), timeout])
  } finally {
    clearTimeout(timer)
  }
}
