import { expect, test } from 'vitest'
import { startBackend } from '../support/backend.ts'
import { startGateway } from '../support/gateway.ts'

test('a load balancer that is not named in TRUSTED_PROXIES is noticed, once', async () => {
  const backend = await startBackend()
  const gateway = await startGateway({ UPSTREAM_URL: backend.url })
  for (let sent = 0; sent < 99; sent++)
    await gateway.send('GET', '/', { headers: { 'x-forwarded-for': '203.0.113.9' } })
  expect(gateway.process.output()).not.toContain('TRUSTED_PROXIES')
  for (let sent = 0; sent < 150; sent++)
    await gateway.send('GET', '/', { headers: { 'x-forwarded-for': '203.0.113.9' } })
  await gateway.process.waitForLine(/TRUSTED_PROXIES=127\.0\.0\.1/)
  expect(gateway.process.output().match(/TRUSTED_PROXIES/g)).toHaveLength(1)
})
