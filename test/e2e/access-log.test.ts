import { once } from 'node:events'
import { connect as connectHttp2, constants } from 'node:http2'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { startBackend, startRawBackend, type RawBackend } from '../support/http/backend.ts'
import { send, sendRaw, startGateway } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { eventually } from '../support/wait/eventually.ts'

test('each request has one access line, without query or key, and without the address if LOG_ADDRESSES=0', async () => {
  const backend = await startBackend()
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, ACCESS_LOG: '1' })
  await gateway.send('GET', '/a/../path?token=secret', { headers: { 'x-api-key': 'secret' } })
  const [line] = await gateway.waitForLine(/^.*"path".*$/)
  expect(JSON.parse(line)).toMatchObject({ method: 'GET', path: '/path', status: 200, client: '127.0.0.1' })
  expect(line).not.toContain('secret')

  const discreet = await startGateway({ UPSTREAM_URL: backend.url, ACCESS_LOG: '1', LOG_ADDRESSES: '0' })
  for (let sent = 0; sent < 6; sent++) await discreet.send('POST', '/forgot-password')
  await discreet.process.waitForLine(/"refusedBy":"forgot-password"/)
  const afterStart = discreet.process.output().split('"listening"}')[1]
  expect(afterStart).toContain('refusedBy')
  expect(afterStart).not.toContain('127.0.0.1')
})

test('a response before any rule is matched has an access line too, with the client, and is counted', async () => {
  const gateway = await startHosted({
    ACCESS_LOG: '1',
    LOG_LEVEL: 'debug',
    TRUSTED_PROXIES: '127.0.0.1',
  })
  const offer = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'
  const rejected = [
    ['GET /expects', 'Host: a\r\nExpect: more\r\n', '/expects', 417, 'unsupported Expect header'],
    [
      'GET /old',
      `Host: a\r\n${offer}Sec-WebSocket-Version: 8\r\n`,
      '/old',
      426,
      'the WebSocket version is not 13',
    ],
    [
      'GET /keyless',
      `Host: a\r\n${offer}Sec-WebSocket-Version: 13\r\n`,
      '/keyless',
      400,
      'the WebSocket handshake is malformed',
    ],
    ['GET /hostless', '', '/hostless', 400, 'the Host header is missing, repeated or invalid'],
    ['TRACE /traced', 'Host: a\r\n', '/traced', 405, 'TRACE is not supported'],
    ['OPTIONS *', 'Host: a\r\n', '*', 204, undefined],
    ['GET /%zz', 'Host: a\r\n', '', 400, 'the path has an invalid percent-encoding'],
    ['PUT /a%0db', 'Host: a\r\n', '', 400, 'the path has a control character'],
    ['DELETE /http://b/c', 'Host: a\r\n', '', 400, 'the path begins with a URL'],
    [
      'POST /framed',
      'Host: a\r\nTransfer-Encoding: gzip, chunked\r\n',
      '',
      501,
      'unsupported Transfer-Encoding (only chunked is supported)',
    ],
  ] as const
  for (const [asked, fields, path, status, reason] of rejected) {
    const head = `${asked} HTTP/1.1\r\nX-Forwarded-For: 203.0.113.9\r\nConnection: close\r\n${fields}\r\n`
    expect(await sendRaw(gateway.port, head)).toContain(`HTTP/1.1 ${status} `)
    const method = asked.split(' ', 1)[0] ?? ''
    const [line] = await gateway.waitForLine(
      new RegExp(`^.*"method":"${method}","path":"${path.replace('*', '\\*')}".*$`),
    )
    expect(JSON.parse(line), asked).toMatchObject({ status, client: '203.0.113.9' })
    const { requestId, rejected: told } = JSON.parse(line) as Record<string, unknown>
    expect(told, asked).toBe(reason)
    if (reason === undefined) continue
    const [debugLine] = await gateway.waitForLine(
      new RegExp(`^.*"requestId":"${String(requestId)}","status":.*"request rejected".*$`),
    )
    expect(JSON.parse(debugLine), asked).toMatchObject({ level: 'debug', status, reason })
  }
  const { body } = await send(gateway.adminPort, 'GET', '/metrics')
  for (const counted of ['{class="2xx"} 1', '{class="4xx"} 8', '{class="5xx"} 1'])
    expect(body).toContain(`sluice_requests_total${counted}\n`)
})

test('a body over the limit that cuts off a response is counted, and in the access line', async () => {
  const backend = await startRawBackend((socket) => {
    socket.once('data', () =>
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n'),
    )
  })
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, ACCESS_LOG: '1', MAX_BODY_SIZE: '10' })
  const client = connect(gateway.port, '127.0.0.1')
  client.write('POST /long HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n')
  await once(client, 'data')
  client.write(`14\r\n${'x'.repeat(20)}\r\n`)
  const [line] = await gateway.waitForLine(/^.*"path":"\/long".*$/)
  const rejected = 'the body is too large (MAX_BODY_SIZE)'
  expect(JSON.parse(line)).toMatchObject({ status: 200, incomplete: true, rejected })
  const { body } = await send(gateway.adminPort, 'GET', '/metrics')
  expect(body).toContain('sluice_rejected_requests_total{reason="body-too-large"} 1')
})

/** Starts a backend that sends the head and a part of each response, and a gateway in front of it. */
async function startHalfAnswering(): Promise<{ gateway: HostedGateway; backend: RawBackend }> {
  const backend = await startRawBackend((socket) => {
    socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf'))
  })
  return { gateway: await startHosted({ UPSTREAM_URL: backend.url, ACCESS_LOG: '1' }), backend }
}

test('a response that the backend cuts off is incomplete in the access line', async () => {
  const { gateway, backend } = await startHalfAnswering()
  const client = connect(gateway.port, '127.0.0.1')
  client.write('GET /cut HTTP/1.1\r\nHost: a\r\n\r\n')
  await once(client, 'data')
  backend.connections[0]?.end()
  const [line] = await gateway.waitForLine(/^.*"path":"\/cut".*$/)
  expect(JSON.parse(line)).toMatchObject({ status: 200, incomplete: true })
})

test('a response whose client disconnects is incomplete in the access line', async () => {
  const { gateway } = await startHalfAnswering()
  const client = connect(gateway.port, '127.0.0.1')
  client.write('GET /left HTTP/1.1\r\nHost: a\r\n\r\n')
  await once(client, 'data')
  client.destroy()
  const [line] = await gateway.waitForLine(/^.*"path":"\/left".*$/)
  expect(JSON.parse(line)).toMatchObject({ status: 200, incomplete: true })
})

test('a response whose HTTP/2 stream the client resets is incomplete in the access line', async () => {
  const { gateway } = await startHalfAnswering()
  const session = connectHttp2(`http://127.0.0.1:${gateway.port}`)
  onTestFinished(() => session.destroy())
  const stream = session.request({ ':path': '/reset' })
  await once(stream, 'response')
  stream.close(constants.NGHTTP2_CANCEL)
  const [line] = await gateway.waitForLine(/^.*"path":"\/reset".*$/)
  expect(JSON.parse(line)).toMatchObject({ status: 200, incomplete: true })
})

test('a whole response, and a request without one, are not incomplete in the access line', async () => {
  const backend = await startRawBackend((socket) => {
    socket.once('data', (head: Buffer) => {
      if (head.includes('/whole')) socket.end('HTTP/1.1 200 OK\r\n\r\nup to the end')
    })
  })
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, ACCESS_LOG: '1' })
  await gateway.send('GET', '/whole')
  const client = connect(gateway.port, '127.0.0.1')
  client.write('GET /unanswered HTTP/1.1\r\nHost: a\r\n\r\n')
  await eventually('the backend has the request', () => backend.connections.length === 2)
  client.destroy()
  const [whole] = await gateway.waitForLine(/^.*"path":"\/whole".*$/)
  const [unanswered] = await gateway.waitForLine(/^.*"path":"\/unanswered".*$/)
  expect(JSON.parse(whole)).not.toHaveProperty('incomplete')
  expect(JSON.parse(unanswered)).toMatchObject({ status: 0 })
  expect(JSON.parse(unanswered)).not.toHaveProperty('incomplete')
})

test('a WebSocket request counts as finished once its tunnel is open', async () => {
  const backend = await startBackend()
  new WebSocketServer({ server: backend.server })
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, ACCESS_LOG: '1' })
  const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/chat`)
  const [line] = await gateway.waitForLine(/^.*"path".*$/)
  expect(JSON.parse(line)).toMatchObject({ path: '/chat', status: 101 })
  const { body } = await send(gateway.adminPort, 'GET', '/metrics')
  expect(body).toMatch(/^sluice_requests_total{class="1xx"} 1$/m)
  socket.terminate()
})

test('unparseable input is logged at debug level, with its error', async () => {
  const gateway = await startHosted({ LOG_LEVEL: 'debug' })
  await sendRaw(gateway.port, 'GET / HTTP/1.1\r\nHost: a\r\nse\x01cret: x\r\n\r\n')
  const [line] = await gateway.waitForLine(/^.*"request rejected".*$/)
  expect(JSON.parse(line)).toMatchObject({
    status: 400,
    reason: 'invalid character',
  })
  expect(line).not.toContain('cret')
})

test('a body over the limit, by its length or while it is read, is in the access line', async () => {
  const backend = await startBackend()
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, ACCESS_LOG: '1', MAX_BODY_SIZE: '10' })
  const long = 'x'.repeat(20)
  await gateway.send('POST', '/declared', { body: long })
  await sendRaw(
    gateway.port,
    `POST /chunked HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n${long}\r\n0\r\n\r\n`,
  )
  for (const path of ['/declared', '/chunked']) {
    const [line] = await gateway.waitForLine(new RegExp(`^.*"path":"${path}".*$`))
    expect(JSON.parse(line)).toMatchObject({ status: 413, rejected: 'the body is too large (MAX_BODY_SIZE)' })
  }
})
