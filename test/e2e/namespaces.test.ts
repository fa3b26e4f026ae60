import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

const from = '127.0.0.2'

test('gateways with different tables share one Redis, each namespace with counters and resets of its own', async () => {
  const backend = await startBackend()
  const REDIS_URL = await freshRedis()
  const start = (namespace: string, requests: number): Promise<HostedGateway> => {
    const file = join(makeTemporaryDirectory(), 'sluice.yaml')
    writeFileSync(
      file,
      `namespace: ${namespace}\nlimits: [{ name: api, match: GET /, requests: ${requests}, window: 10m }]\n`,
    )
    return startHosted({ UPSTREAM_URL: backend.url, REDIS_URL, CONFIG_FILE: file })
  }
  const [shop, shopToo, blog] = await Promise.all([start('shop', 6), start('shop', 6), start('blog', 4)])
  /** How many of a dozen concurrent requests pass, spread over the gateways. */
  const countPassed = async (gateways: readonly HostedGateway[]): Promise<number> => {
    const asked = gateways.flatMap((gateway) =>
      Array.from({ length: 12 / gateways.length }, () => gateway.send('GET', '/', { from })),
    )
    return (await Promise.all(asked)).filter(({ status }) => status === 200).length
  }
  expect(await countPassed([shop, shopToo])).toBe(6)
  expect(await countPassed([blog])).toBe(4)
  expect(await countPassed([shop, shopToo, blog])).toBe(0)

  const client = { ip: from }
  expect(await askOperator(blog, 'POST', '/api/clients/reset', { policy: 'api', client })).toMatchObject({
    status: 200,
  })
  await eventually('the other namespace has its whole quota', async () =>
    expect(await countPassed([blog])).toBe(4),
  )
  expect(await askOperator(shop, 'POST', '/api/clients/inspect', { policy: 'api', client })).toMatchObject({
    body: { states: [{ used: 6 }] },
  })
  expect(await countPassed([shop, shopToo])).toBe(0)
})
