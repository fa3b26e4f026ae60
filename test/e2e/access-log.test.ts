import { expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { startBackend } from '../support/backend.ts'
import { send, sendRaw, startGateway } from '../support/gateway.ts'

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

test('what is answered before any rule is looked at has its line too, with the client, and is counted', async () => {
  const gateway = await startGateway({ ACCESS_LOG: '1', TRUSTED_PROXIES: '127.0.0.1' })
  const offer = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'
  const rejected = [
    ['GET /expects', 'Host: a\r\nExpect: more\r\n', '/expects', 417],
    ['GET /old', `Host: a\r\n${offer}Sec-WebSocket-Version: 8\r\n`, '/old', 426],
    ['GET /keyless', `Host: a\r\n${offer}Sec-WebSocket-Version: 13\r\n`, '/keyless', 400],
    ['GET /hostless', '', '/hostless', 400],
    ['TRACE /traced', 'Host: a\r\n', '/traced', 405],
    ['OPTIONS *', 'Host: a\r\n', '*', 204],
    ['GET /%zz', 'Host: a\r\n', '', 400],
    ['POST /framed', 'Host: a\r\nTransfer-Encoding: gzip, chunked\r\n', '', 501],
  ] as const
  for (const [asked, fields, path, status] of rejected) {
    const head = `${asked} HTTP/1.1\r\nX-Forwarded-For: 203.0.113.9\r\nConnection: close\r\n${fields}\r\n`
    expect(await sendRaw(gateway.port, head)).toContain(`HTTP/1.1 ${status} `)
    const method = asked.split(' ', 1)[0] ?? ''
    const [line] = await gateway.process.waitForLine(
      new RegExp(`^.*"method":"${method}","path":"${path.replace('*', '\\*')}".*$`),
    )
    expect(JSON.parse(line), asked).toMatchObject({ status, client: '203.0.113.9' })
  }
  const { body } = await send(gateway.adminPort, 'GET', '/metrics')
  for (const counted of ['{class="2xx"} 1', '{class="4xx"} 6', '{class="5xx"} 1'])
    expect(body).toContain(`sluice_requests_total${counted}\n`)
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
