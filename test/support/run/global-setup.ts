import type { TestProject } from 'vitest/node'
import { bundle } from './bundle.ts'
import { BUNDLES } from './bundled-scripts.ts'
import { findRedisEngine, launchRedisContainer, redisImage } from '../redis/redis-container.ts'
import {
  givenRedisBinary,
  launchRedisServer,
  obtainRedisBinary,
  type RedisServer,
} from '../redis/redis-server.ts'

let started: RedisServer | undefined

/** Bundles the scripts that tests start. If `TEST_SOURCES` is set, tests start them from the sources instead. */
async function bundleScripts(project: TestProject): Promise<void> {
  if (process.env['TEST_SOURCES']) return
  process.env[BUNDLES] = await bundle()
  // Called with `vitest --watch` when a file has changed.
  project.onTestsRerun(async () => {
    process.env[BUNDLES] = await bundle()
  })
}

/**
 * Gets the one Redis that all tests share before the first test starts, and passes its address in `SHARED_TEST_REDIS_URL`. Tries, in this
 * order: the server that `REDIS_URL` names; the program that `REDIS_SERVER` names; a container; the machine's own `redis-server`. Reports
 * which one it uses. Fails the run if there is none, so that no test is skipped for lack of Redis.
 */
async function obtainRedis(): Promise<void> {
  const given = process.env['REDIS_URL']
  if (given) {
    announce(given, 'named by REDIS_URL')
    return
  }

  const engine = givenRedisBinary === undefined ? await findRedisEngine() : undefined
  if (engine) {
    started = await launchRedisContainer(engine)
    announce(started.url, `in a container of ${redisImage}`)
    return
  }

  const binary = obtainRedisBinary()
  if (binary === undefined) {
    throw new Error(
      `The tests need a Redis: set REDIS_URL, or start a container engine that has or can pull ${redisImage}, ` +
        'or install redis-server.',
    )
  }
  started = await launchRedisServer(binary)
  announce(started.url, `by ${binary}`)
}

export async function setup(project: TestProject): Promise<void> {
  // Each project calls this; only the first call sets up anything.
  await Promise.all([
    process.env[BUNDLES] ? undefined : bundleScripts(project),
    process.env['SHARED_TEST_REDIS_URL'] ? undefined : obtainRedis(),
  ])
}

export async function teardown(): Promise<void> {
  await started?.stop()
}

function announce(url: string, origin: string): void {
  process.env['SHARED_TEST_REDIS_URL'] = url
  const { host } = new URL(url)
  console.log(`Redis for the tests: ${host}, ${origin}`)
}
