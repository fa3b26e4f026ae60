import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { startRedisCluster } from '../support/redis/redis-cluster.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

/* Requests that count for several clients at once, on different nodes of a cluster. */

const limits = `limits:
  - { name: search, match: GET /search, key: 'query:user', requests: 3, window: 1h }
  - { name: project, match: 'GET /projects/:id', key: 'path:id', requests: 3, window: 1h }
  - { name: either, match: GET /either, key: { first: ['header:x-api-key', ip] }, requests: 3, window: 1h }
  - { name: whole, match: GET /whole, key: global, requests: 3, window: 1h }
  - { name: session, match: GET /session, key: 'cookie:sid', requests: 3, window: 1h, algorithm: sliding }
`

function gatewayAt(gateways: readonly HostedGateway[], at: number): HostedGateway {
  const gateway = gateways[at % gateways.length]
  if (!gateway) throw new RangeError('no gateway')
  return gateway
}

async function countPassed(
  gateways: readonly HostedGateway[],
  requests: number,
  path: (at: number) => string,
  headers: (at: number) => Record<string, string> = () => ({}),
): Promise<number> {
  const replies = await Promise.all(
    Array.from({ length: requests }, (_, at) =>
      gatewayAt(gateways, at).send('GET', path(at), { headers: headers(at) }),
    ),
  )
  const statuses = replies.map(({ status }) => status)
  expect(statuses.every((status) => status === 200 || status === 429)).toBe(true)
  return statuses.filter((status) => status === 200).length
}

test('every kind of key counts exactly over two gateways on a cluster', async () => {
  const cluster = await startRedisCluster(3, 0)
  const backend = await startBackend()
  const env = {
    UPSTREAM_URL: backend.url,
    REDIS_URL: cluster.url,
    CONFIG_FILE: writeConfigFile(limits),
    // This test is about counts, so the gateway waits for Redis even on a slow machine.
    STORE_TIMEOUT: '5s',
  }
  const gateways = await Promise.all([startHosted(env), startHosted(env)])

  // Both values count, no matter which nodes they are on. Fewer concurrent requests may pass at first: if one node refuses a request, the
  // units that the other node has counted are given back a moment later.
  for (let pair = 0; pair < 10; pair++) {
    const [one, two] = [`one-${pair}`, `two-${pair}`]
    const both = (): string => `/search?user=${one}&user=${two}`
    let passed = await countPassed(gateways, 30, both)
    expect(passed).toBeLessThanOrEqual(3)
    await eventually('the quota is used up', async () => {
      passed += await countPassed(gateways, 1, both)
      expect(passed).toBe(3)
    })
    expect(await countPassed(gateways, 4, both)).toBe(0)
    expect(await countPassed(gateways, 4, (at) => `/search?user=${at < 2 ? one : two}`)).toBe(0)
    expect(await countPassed(gateways, 30, () => `/search?user=three-${pair}`)).toBe(3)
  }
  expect(await countPassed(gateways, 30, (at) => (at % 2 ? '/projects/7' : '/projects/%37'))).toBe(3)
  expect(await countPassed(gateways, 30, () => '/projects/8')).toBe(3)
  expect(await countPassed(gateways, 30, () => '/either')).toBe(3)
  expect(
    await countPassed(
      gateways,
      30,
      () => '/either',
      () => ({ 'x-api-key': 'k' }),
    ),
  ).toBe(3)
  expect(
    await countPassed(
      gateways,
      30,
      () => '/whole',
      (at) => ({ 'x-api-key': String(at) }),
    ),
  ).toBe(3)
  const cookies = (): Record<string, string> => ({ cookie: 'sid=a; sid=b' })
  let passed = await countPassed(gateways, 30, () => '/session', cookies)
  expect(passed).toBeLessThanOrEqual(3)
  await eventually('the quota is used up', async () => {
    passed += await countPassed(gateways, 1, () => '/session', cookies)
    expect(passed).toBe(3)
  })
  const oneOf = (at: number): Record<string, string> => ({ cookie: `sid=${at % 2 ? 'a' : 'b'}` })
  expect(await countPassed(gateways, 4, () => '/session', oneOf)).toBe(0)
})
