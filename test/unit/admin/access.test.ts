import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { createAdminAccess } from '../../../proxy/admin/access.ts'

// The attack: a reverse proxy on this machine leads to the admin listener without a token, by mistake, such as this gateway with
// `upstream: http://127.0.0.1:9090`, where a Prometheus was meant. To the listener its requests are from this machine, and clients choose
// their `Host`. Whoever reaches the proxy would be an operator.

const isLet = async (headers: IncomingMessage['headers']): Promise<boolean> => {
  const request = { headers, socket: { remoteAddress: '127.0.0.1' } } as unknown as IncomingMessage
  return (await createAdminAccess(undefined)(request)) === undefined
}

test.each([
  { 'x-forwarded-for': '203.0.113.7' },
  { 'x-forwarded-for': '' },
  { 'x-real-ip': '203.0.113.7' },
  { forwarded: 'for=203.0.113.7' },
  { via: '1.1 gateway' },
])('without a token, what a proxy has forwarded is not from this machine: %o', async (headers) => {
  expect(await isLet({ host: 'localhost:9090', ...headers })).toBe(false)
})

test('without a token, a request from this machine passes', async () => {
  expect(await isLet({ host: 'localhost:9090' })).toBe(true)
  expect(await isLet({ host: '127.0.0.1:9090', 'sec-fetch-site': 'same-origin' })).toBe(true)
})

test('with a token, it alone decides', async () => {
  const headers = { host: 'admin.example.com', authorization: 'Bearer of-sixteen-letters', via: '1.1 edge' }
  const request = { headers, socket: { remoteAddress: '10.0.0.2' } } as unknown as IncomingMessage
  expect(await createAdminAccess('of-sixteen-letters')(request)).toBeUndefined()
})
