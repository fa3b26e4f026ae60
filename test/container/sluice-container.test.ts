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

test('limits before a backend on this machine, and forgets all at reset', async () => {
  await using gateway = await container().start()
  const response = await fetch(gateway.getUrl())
  expect([response.status, await response.text()]).toEqual([200, 'the backend'])
  expect(await logins(gateway, 3)).toEqual([200, 200, 429])
  await gateway.reset()
  expect(await logins(gateway, 3)).toEqual([200, 200, 429])
})

test('has the admin listener, behind a token', async () => {
  await using gateway = await container().start()
  const { url, token } = gateway.getAdmin()
  const ask = (headers: Record<string, string>): Promise<number> =>
    fetch(`${url}/api/status`, { headers }).then(({ status }) => status)
  expect([await ask({}), await ask({ authorization: `Bearer ${token}` })]).toEqual([401, 200])
})

test('two count together in Redis', async () => {
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
