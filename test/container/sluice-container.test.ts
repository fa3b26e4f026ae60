import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { GenericContainer, Network, Wait } from 'testcontainers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  SluiceContainer,
  type StartedSluiceContainer,
} from '../../proxy/testing/testcontainers/sluice-container.ts'
import { buildImage, testImages } from '../support/containers/images.ts'
import { redisImage } from '../support/redis/redis-container.ts'

const limits = [{ name: 'login', match: 'POST /login', requests: 2, window: '15m' }]
const backend = createServer((_request, response) => response.end('the backend'))
let upstream: string

beforeAll(async () => {
  await buildImage('gateway')
  await new Promise<void>((resolve) => backend.listen(0, '0.0.0.0', resolve))
  upstream = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`
})

afterAll(() => backend.close())

function container(): SluiceContainer {
  return new SluiceContainer(testImages.gateway).withUpstream(upstream).withLimits(limits)
}

async function logins(gateway: StartedSluiceContainer, count: number): Promise<number[]> {
  const statuses: number[] = []
  for (let i = 0; i < count; i++) {
    const response = await fetch(`${gateway.getUrl()}/login`, { method: 'POST' })
    await response.arrayBuffer()
    statuses.push(response.status)
  }
  return statuses
}

test('the container limits requests to a backend on this machine, and a reset forgets all counters', async () => {
  await using gateway = await container().start()
  const response = await fetch(gateway.getUrl())
  expect([response.status, await response.text()]).toEqual([200, 'the backend'])
  expect(await logins(gateway, 3)).toEqual([200, 200, 429])
  await gateway.reset()
  expect(await logins(gateway, 3)).toEqual([200, 200, 429])
})

test('a reset forgets bans, overrides and the counters of presets', async () => {
  const banning = {
    name: 'login',
    match: 'POST /login',
    requests: 2,
    window: '15m',
    ban: { after: 1, for: '1h' },
  }
  await using gateway = await container().withLimits([banning]).withSettings({ preset: 'wordpress' }).start()
  const { url, token } = gateway.getAdmin()
  const ask = async (path: string, body?: object): Promise<unknown> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const sent = body && { method: 'POST', body: JSON.stringify(body) }
    return (await fetch(`${url}/api/${path}`, { headers, ...sent })).json()
  }
  await fetch(`${gateway.getUrl()}/wp-login.php`, { method: 'POST' })
  expect(await logins(gateway, 4)).toEqual([200, 200, 429, 429])
  await ask('clients/ban', { client: '192.0.2.7', for: '1h' })
  await ask('clients/override', { client: '192.0.2.7', policy: 'login', requests: 9, for: '1h' })
  const { bans } = (await ask('bans')) as { bans: { client: object; by: string }[] }
  expect(bans.map(({ by }) => by).sort()).toEqual(['operator', 'rule'])
  const client = bans.find(({ by }) => by === 'rule')?.client
  const used = async (): Promise<string[]> => {
    const { states } = (await ask('clients/inspect', { client })) as {
      states: { policy: string; used: number }[]
    }
    return states.filter((state) => state.used > 0).map(({ policy }) => policy)
  }
  expect(await used()).toEqual(['login', 'wordpress-login-failures', 'wordpress-login'])
  await gateway.reset()
  expect(await used()).toEqual([])
  expect([await ask('bans'), await ask('overrides')]).toMatchObject([{ total: 0 }, { total: 0 }])
  expect(await logins(gateway, 3)).toEqual([200, 200, 429])
})

test('the container has an admin listener that needs a token', async () => {
  await using gateway = await container().start()
  const { url, token } = gateway.getAdmin()
  const ask = (headers: Record<string, string>): Promise<number> =>
    fetch(`${url}/api/status`, { headers }).then(({ status }) => status)
  expect([await ask({}), await ask({ authorization: `Bearer ${token}` })]).toEqual([401, 200])
})

test('two containers count together in Redis', async () => {
  await using network = await new Network().start()
  await using redis = await new GenericContainer(redisImage)
    .withNetwork(network)
    .withNetworkAliases('redis')
    .withWaitStrategy(Wait.forLogMessage('Ready to accept connections'))
    .start()
  expect(redis.getId()).toBeTruthy()
  const start = (): Promise<StartedSluiceContainer> =>
    container().withNetwork(network).withRedis('redis://redis:6379').start()
  await using one = await start()
  await using other = await start()
  expect([...(await logins(one, 1)), ...(await logins(other, 2))]).toEqual([200, 200, 429])
  await expect(one.reset()).rejects.toThrow('the counters are in Redis')
})

test('a container with an invalid table does not start, and its log says why', async () => {
  const lines: string[] = []
  const wrong = container()
    .withLimits([{ name: 'a', match: 'GET /', requests: 0, window: '1m' }])
    .withLogConsumer((stream) => stream.on('data', (line) => lines.push(String(line))))
  await expect(wrong.start()).rejects.toThrow()
  expect(lines.join('')).toContain('rule "a", requests: got 0')
})
