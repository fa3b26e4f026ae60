import { expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { startBackend } from '../support/backend.ts'
import { send, startGateway } from '../support/gateway.ts'

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

test('a WebSocket is a request that is over, and counted, once its tunnel is open', async () => {
  const backend = await startBackend()
  new WebSocketServer({ server: backend.server })
  const gateway = await startGateway({ UPSTREAM_URL: backend.url, ACCESS_LOG: '1' })
  const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/chat`)
  const [line] = await gateway.process.waitForLine(/^.*"path".*$/)
  expect(JSON.parse(line)).toMatchObject({ path: '/chat', status: 101 })
  const { body } = await send(gateway.adminPort, 'GET', '/metrics')
  expect(body).toMatch(/^sluice_requests_total{class="1xx"} 1$/m)
  socket.terminate()
})
