import { describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { freshRedis } from '../support/redis/redis.ts'

describe.each([
  ['in memory', () => Promise.resolve({})],
  ['in Redis', async () => ({ REDIS_URL: await freshRedis() })],
])('IPV6_PREFIX, counters %s', (_, store) => {
  test('IPV6_PREFIX sets the network of a client, for rules and for operators', async () => {
    const backend = await startBackend()
    const gateway = await startHosted({
      UPSTREAM_URL: backend.url,
      TRUSTED_PROXIES: '127.0.0.0/8',
      IPV6_PREFIX: '48',
      ...(await store()),
    })
    const statusFrom = async (address: string): Promise<number> =>
      (await gateway.send('POST', '/forgot-password', { headers: { 'x-forwarded-for': address } })).status
    const statuses: number[] = []
    for (let network = 0; network < 6; network++)
      statuses.push(await statusFrom(`2001:db8:1:${network.toString(16)}::1`))
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429])
    expect(await statusFrom('2001:db8:2::1')).toBe(200)
    expect(backend.seen).toHaveLength(6)

    const client = { ip: '2001:db8:1::/48' }
    expect((await askOperator(gateway, 'GET', '/api/clients/limited')).body).toMatchObject({
      clients: [{ policy: 'forgot-password', client }],
    })
    const asked = (ip: string): object => ({ policy: 'forgot-password', client: { ip } })
    for (const ip of [client.ip, '2001:db8:1:ffff::5'])
      expect((await askOperator(gateway, 'POST', '/api/clients/inspect', asked(ip))).body, ip).toMatchObject({
        states: [{ used: 5, exceeded: true }],
      })
    await askOperator(gateway, 'POST', '/api/clients/reset', asked('2001:db8:1:77::1'))
    expect(await statusFrom('2001:db8:1:5::1')).toBe(200)
  })
})
