import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'

// Over HTTP/2, the `Cookie` header may be split into several fields (RFC 9113 section 8.2.3), and the host is `:authority`.
test('HTTP/2 clients are identified by the same keys', async () => {
  const { url } = await startBackend()
  const CONFIG_FILE = join(import.meta.dirname, 'client-keys.yaml')
  const gateway = await startHosted({ UPSTREAM_URL: url, CONFIG_FILE, ...tlsSettings() })
  const session = connectHttp2(gateway.port)
  const statusOf = async (path: string, headers: Record<string, string | string[]> = {}): Promise<unknown> =>
    (await sendHttp2(session, { ':path': path, ...headers })).status

  expect(await statusOf('/session', { cookie: ['a=1', 'sid=one'] })).toBe(200)
  expect(await statusOf('/session', { cookie: ['sid="ONE"', 'b=2'] })).toBe(429)
  expect(await statusOf('/session', { cookie: ['sid=two', 'sid=one'] })).toBe(429)
  expect(await statusOf('/session', { cookie: 'sid=two' })).toBe(200)

  expect(await statusOf('/site', { ':authority': 'one.example' })).toBe(200)
  expect(await statusOf('/site', { ':authority': 'ONE.example.:443' })).toBe(429)
  expect(await statusOf('/tenant', { ':authority': 'other.example' })).toBe(200)
  expect(await statusOf('/tenant', { ':authority': 'a.tenant.example' })).toBe(200)
  expect(await statusOf('/tenant', { ':authority': 'tenant.example' })).toBe(429)

  expect(await statusOf('/search?user=one')).toBe(200)
  expect(await statusOf('/search?user=two&%75ser=ONE')).toBe(429)
})
