import { execFileSync } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { gatewayDefaults, send } from '../support/gateway/gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { spawnCommand, type NodeProcess } from '../support/gateway/process.ts'
import { startBackend } from '../support/http/backend.ts'
import { openRedis } from '../support/redis/redis-limiters.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import { atEndOfFile } from '../support/run/at-end.ts'
import { makeTemporaryDirectory, writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'
import { wallClockMs } from '../support/calendar/wall-clock.ts'

// An upgrade replica by replica, and back: an earlier version of the gateway, from the Git history, and this one share a Redis.

/** A commit before the code was moved to layers. The format of the keys in Redis has not changed since. */
const EARLIER = '95a93b2'
const QUOTA = 60

type Gateway = { readonly port: number; readonly adminPort: number; readonly process: NodeProcess }

const versions = {
  newer: resolve(import.meta.dirname, '../..'),
  older: join(makeTemporaryDirectory(), 'older'),
}
let upstream = ''
let redisUrl = ''

beforeAll(async () => {
  try {
    execFileSync('git', ['worktree', 'add', '--detach', versions.older, EARLIER], {
      cwd: versions.newer,
      stdio: 'pipe',
    })
  } catch (cause) {
    throw new Error(
      `this test needs the history of the repository, back to ${EARLIER}: git fetch --unshallow`,
      { cause },
    )
  }
  atEndOfFile(() => {
    execFileSync('git', ['worktree', 'remove', '--force', versions.older], {
      cwd: versions.newer,
      stdio: 'pipe',
    })
  })
  symlinkSync(join(versions.newer, 'node_modules'), join(versions.older, 'node_modules'))
  redisUrl = (await startRedisServer()).url
  upstream = (await startBackend((_, response) => response.end('ok'))).url
})

const config = writeConfigFile(
  JSON.stringify({
    limits: ['fixed', 'sliding', 'token-bucket'].map((algorithm) => ({
      name: algorithm,
      match: `GET /${algorithm}`,
      requests: QUOTA,
      window: '1h',
      ...(algorithm !== 'fixed' && { algorithm }),
    })),
  }),
)

async function start(version: keyof typeof versions): Promise<Gateway> {
  const env = { ...gatewayDefaults, CONFIG_FILE: config, UPSTREAM_URL: upstream, REDIS_URL: redisUrl }
  const process_ = spawnCommand(process.execPath, env, ['scripts/run.js', 'proxy/main.ts'], {
    cwd: versions[version],
  })
  const [line] = await process_.waitForLine(/^.*"msg":"listening".*$/)
  const { port, adminPort } = JSON.parse(line) as { port: number; adminPort: number }
  await eventually('it is ready', async () =>
    expect((await send(adminPort, 'GET', '/readyz')).status).toBe(200),
  )
  return { port, adminPort, process: process_ }
}

/** Asks all gateways in turn. Returns the number of requests that they admitted together. */
async function countAdmitted(
  gateways: readonly Gateway[],
  path: string,
  from: string,
  requests: number,
): Promise<number> {
  const replies = await Promise.all(
    Array.from({ length: requests }, (_, index) => {
      const { port } = gateways[index % gateways.length] ?? expect.unreachable()
      return send(port, 'GET', path, { from })
    }),
  )
  return replies.filter(({ status }) => status === 200).length
}

test('a quota is shared by both versions, through an upgrade and back', async () => {
  let gateways = [await start('older'), await start('older')]
  const stages = [
    ['older', 'newer'],
    ['newer', 'newer'],
    ['newer', 'older'],
    ['older', 'older'],
  ] as const
  for (const [stage, after] of stages.entries()) {
    // Part of each quota is used before the replicas are replaced, the rest afterwards.
    const from = `127.0.1.${stage + 1}`
    const used = new Map<string, number>()
    for (const path of ['/fixed', '/sliding', '/token-bucket'])
      used.set(path, await countAdmitted(gateways, path, from, QUOTA / 2))
    const started = await Promise.all(after.map(start))
    for (const { process: old } of gateways) expect(await old.stop()).toBe(0)
    gateways = started
    for (const path of ['/fixed', '/sliding', '/token-bucket']) {
      expect(used.get(path), path).toBe(QUOTA / 2)
      // A bucket refills by one unit a minute.
      const admitted = await countAdmitted(gateways, path, from, QUOTA)
      expect(admitted, `${path} with ${after.join(' and ')}`).toBeGreaterThanOrEqual(QUOTA / 2)
      expect(admitted, `${path} with ${after.join(' and ')}`).toBeLessThanOrEqual(
        QUOTA / 2 + (path === '/token-bucket' ? 4 : 0),
      )
    }
  }
})

test('bans of either version apply in the other', async () => {
  const [older, newer] = [await start('older'), await start('newer')]
  for (const [index, by] of [older, newer].entries()) {
    const ip = `127.0.2.${index + 1}`
    const { status } = await askOperator(by, 'POST', '/api/clients/ban', { client: { ip }, for: '10m' })
    expect(status).toBeLessThan(300)
    for (const { port } of [older, newer]) {
      await eventually('the ban is in effect', async () =>
        expect((await send(port, 'GET', '/fixed', { from: ip })).status).toBe(429),
      )
    }
  }
})

test('overrides of either version apply in the other, and so is their end', async () => {
  const gateways = [await start('older'), await start('newer')]
  const algorithms = ['fixed', 'sliding', 'token-bucket']
  // A lower and a higher quota, for each algorithm.
  for (const [index, by] of gateways.entries())
    for (const [place, requests] of [10, 2 * QUOTA].entries()) {
      const ip = `127.0.4.${1 + 2 * index + place}`
      for (const policy of algorithms) {
        const override = { policy, client: { ip }, requests, for: '10m' }
        const { status } = await askOperator(by, 'POST', '/api/clients/override', override)
        expect(status).toBeLessThan(300)
      }
      for (const gateway of gateways)
        await eventually('both list the overrides', async () => {
          const { body } = await askOperator(gateway, 'GET', '/api/overrides')
          const { overrides } = body as { overrides: { client: { ip?: string } }[] }
          expect(overrides.filter(({ client }) => client.ip === ip)).toHaveLength(algorithms.length)
        })
      for (const policy of algorithms) {
        const admitted = await countAdmitted(gateways, `/${policy}`, ip, 3 * QUOTA)
        expect(admitted, `${policy} with ${requests}`).toBeGreaterThanOrEqual(requests)
        // Meanwhile a bucket refills, by one unit every half minute at most.
        expect(admitted, policy).toBeLessThanOrEqual(requests + (policy === 'token-bucket' ? 4 : 0))
      }
      // The other version removes the overrides.
      const other = gateways[1 - index] ?? expect.unreachable()
      for (const policy of algorithms)
        await askOperator(other, 'POST', '/api/clients/override/remove', { policy, client: { ip } })
      await eventually('neither has them any more', async () => {
        for (const gateway of gateways) {
          const { body } = await askOperator(gateway, 'GET', '/api/overrides')
          expect(body).toMatchObject({ total: 0 })
        }
      })
    }
})

test('the older version keeps and names entries that only the newer one understands', async () => {
  const redis = openRedis(redisUrl)
  const entry = `${wallClockMs() + 3_600_000} ${JSON.stringify({ kind: 'quarantine', partitionKey: '127.0.3.1' })}`
  await redis.hset('sluice:1:{clients}', 'quarantine * 127.0.3.1', entry)
  for (const version of ['older', 'newer'] as const) {
    const gateway = await start(version)
    await gateway.process.waitForLine(
      /some bans or overrides in Redis (?:have no effect|are not in force) here/,
    )
    const ban = { client: { ip: '127.0.3.2' }, for: '10m' }
    expect((await askOperator(gateway, 'POST', '/api/clients/ban', ban)).status).toBeLessThan(300)
    expect(await redis.hget('sluice:1:{clients}', 'quarantine * 127.0.3.1')).toBe(entry)
  }
})
