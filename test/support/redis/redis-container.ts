import { spawnSync } from 'node:child_process'
import { GenericContainer, Wait } from 'testcontainers'
import { atEnd } from '../run/at-end.ts'
import { findEngine, obtainImage, type Engine } from '../containers/engine.ts'
import { commonArgs, type RedisServer, type RedisServerOptions } from './redis-server.ts'

export const redisImage = process.env['REDIS_IMAGE'] || 'redis:8'

const redisPort = 6379
const running = new Set<string>()

atEnd(() => {
  if (running.size > 0) spawnSync('docker', ['rm', '--force', '--volumes', ...running], { stdio: 'ignore' })
})

/** The engine of this machine if it has the Redis image or can pull it, otherwise undefined. */
export async function findRedisEngine(): Promise<Engine | undefined> {
  const engine = await findEngine(2_000)
  return engine && (await obtainImage(engine, redisImage, 60_000)) ? engine : undefined
}

/** Starts Redis in a container and waits until it accepts connections. The container does not have the files that `args` names. */
export async function launchRedisContainer(
  engine: Engine,
  options: RedisServerOptions = {},
): Promise<RedisServer> {
  const container = await new GenericContainer(redisImage)
    .withCommand(['redis-server', '--protected-mode', 'no', ...commonArgs, ...(options.args ?? [])])
    .withExposedPorts(options.port === undefined ? redisPort : { container: redisPort, host: options.port })
    .withWaitStrategy(Wait.forLogMessage('Ready to accept connections'))
    .start()
  const id = container.getId()
  running.add(id)
  const port = container.getMappedPort(redisPort)
  // An address, because `localhost` resolves to IPv4 first on some machines, and to IPv6 on others.
  const host = container.getHost() === 'localhost' ? '127.0.0.1' : container.getHost()
  const inEngine = engine.container.getById(id)

  return {
    url: `redis://${host}:${port}`,
    port,
    pid: (await inEngine.inspect()).State.Pid,
    signal: async (signal) => {
      await inEngine.kill({ signal })
      if (signal === 'SIGKILL') await inEngine.wait()
    },
    stop: async () => {
      await inEngine.remove({ force: true, v: true })
      running.delete(id)
    },
  }
}
