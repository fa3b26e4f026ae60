import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { resolvingWith, startDnsServer } from '../support/network/dns-server.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { eventually } from '../support/wait/eventually.ts'

test('the name of a host is trusted once it resolves, even if it did not at start', async () => {
  const backend = await startBackend((request, response) =>
    response.end(String(request.headers['x-real-ip'])),
  )
  const dns = await startDnsServer([], 1)
  const settings = {
    UPSTREAM_URL: backend.url,
    TRUSTED_PROXIES: '10.0.0.1,nginx.test',
    ...resolvingWith(dns),
  }
  const gateway = await startHosted(settings)
  await gateway.waitForLine(/"level":"warn".*"host":"nginx\.test".*cannot resolve a host name/)
  const seenFrom = async (from: string): Promise<string> =>
    (await gateway.send('GET', '/', { from, headers: { 'x-forwarded-for': '203.0.113.9' } })).body
  expect(await seenFrom('127.0.0.2')).toBe('127.0.0.2')

  dns.addresses = ['127.0.0.2']
  await eventually('the proxy is trusted', async () =>
    expect(await seenFrom('127.0.0.2')).toBe('203.0.113.9'),
  )
  expect(await seenFrom('127.0.0.3')).toBe('127.0.0.3')

  // A host that resolves at startup is trusted from the first request on.
  const known = await startHosted(settings)
  const first = await known.send('GET', '/', {
    from: '127.0.0.2',
    headers: { 'x-forwarded-for': '203.0.113.9' },
  })
  expect(first.body).toBe('203.0.113.9')
})

test('networks with a name are trusted, in the chain too', async () => {
  const backend = await startBackend((request, response) =>
    response.end(String(request.headers['x-real-ip'])),
  )
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, TRUSTED_PROXIES: 'loopback,cloudflare' })
  const chain = '198.51.100.1, 203.0.113.9, 104.16.0.1, 2606:4700::1'
  expect((await gateway.send('GET', '/', { headers: { 'x-forwarded-for': chain } })).body).toBe('203.0.113.9')
})
