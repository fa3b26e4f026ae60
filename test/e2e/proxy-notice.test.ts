import { Agent } from 'node:http'
import { afterAll, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'

const agent = new Agent({ keepAlive: true })
afterAll(() => agent.destroy())

test('a load balancer that is not in TRUSTED_PROXIES is logged, once', async () => {
  const backend = await startBackend()
  const gateway = await startHosted({ UPSTREAM_URL: backend.url })
  for (let sent = 0; sent < 99; sent++)
    await gateway.send('GET', '/', { headers: { 'x-forwarded-for': '203.0.113.9' }, agent })
  expect(gateway.output()).not.toContain('TRUSTED_PROXIES')
  for (let sent = 0; sent < 150; sent++)
    await gateway.send('GET', '/', { headers: { 'x-forwarded-for': '203.0.113.9' }, agent })
  await gateway.waitForLine(/TRUSTED_PROXIES=127\.0\.0\.1/)
  expect(gateway.output().match(/TRUSTED_PROXIES/g)).toHaveLength(1)
})

test('one of two alternating load balancers is noticed, and not named if addresses are not logged', async () => {
  const backend = await startBackend()
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, LOG_ADDRESSES: '0' })
  for (let sent = 0; sent < 200; sent++)
    await gateway.send('GET', '/', {
      headers: { 'x-forwarded-for': '203.0.113.9' },
      agent,
      from: sent % 2 === 0 ? '127.0.0.2' : '127.0.0.3',
    })
  const [line] = await gateway.waitForLine(/^.*TRUSTED_PROXIES.*$/)
  expect(line).not.toContain('127.0.0')
})
