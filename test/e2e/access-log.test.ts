import { expect, test } from 'vitest'
import { startBackend } from '../support/backend.ts'
import { startGateway } from '../support/gateway.ts'

test('an access line a request, without query or key; without the address where that is wished', async () => {
  const backend = await startBackend()
  const gateway = await startGateway({ UPSTREAM_URL: backend.url, ACCESS_LOG: '1' })
  await gateway.send('GET', '/a/../path?token=secret', { headers: { 'x-api-key': 'secret' } })
  const [line] = await gateway.process.waitForLine(/^.*"path".*$/)
  expect(JSON.parse(line)).toMatchObject({ method: 'GET', path: '/path', status: 200, client: '127.0.0.1' })
  expect(line).not.toContain('secret')

  const discreet = await startGateway({ UPSTREAM_URL: backend.url, ACCESS_LOG: '1', LOG_ADDRESSES: '0' })
  for (let sent = 0; sent < 6; sent++) await discreet.send('POST', '/forgot-password')
  await discreet.process.waitForLine(/"refusedBy":"forgot-password"/)
  const afterStart = discreet.process.output().split('"listening"}')[1]
  expect(afterStart).toContain('refusedBy')
  expect(afterStart).not.toContain('127.0.0.1')
})
