import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { fieldLines, startBackend, startRawBackend } from '../support/http/backend.ts'
import { sendRaw } from '../support/gateway/gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { startHttp2Backend } from '../support/http/http2-backend.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'

describe('a request is forwarded', () => {
  test('a request keeps its method, target and body, and is framed anew', async () => {
    let body = ''
    const backend = await startBackend((request, response) => {
      body = ''
      request.on('data', (chunk: Buffer) => (body += chunk.toString()))
      request.on('end', () => response.end())
    })
    const gateway = await startHosted({ UPSTREAM_URL: `${backend.url}/prefix/` })
    await gateway.send('PUT', '/a/./b//c?d=%zz', { body: 'by length' })
    expect(body).toBe('by length')
    expect(backend.seen[0]).toMatchObject({ method: 'PUT', url: '/prefix/a/b//c?d=%zz' })
    for (const method of ['DELETE', 'OPTIONS', 'GET', 'PATCH']) {
      await gateway.send(method, '/x', { body: 'in chunks', headers: { 'transfer-encoding': 'chunked' } })
      expect(body).toBe('in chunks')
    }
    expect(backend.seen).toHaveLength(5)
  })

  test('a request loses its hop-by-hop headers and gets those of the gateway', async () => {
    const backend = await startBackend()
    const gateway = await startHosted({ UPSTREAM_URL: backend.url })
    await gateway.send('GET', '/', {
      headers: {
        host: 'shop.example:81',
        connection: 'X-Gone, x-forwarded-for',
        'x-gone': '1',
        'keep-alive': 'timeout=5',
        'proxy-authorization': 'Basic eA==',
        te: 'trailers',
        forwarded: 'for=9.9.9.9',
        'x-forwarded-for': '9.9.9.9',
        'x-forwarded-proto': 'https',
        'x-forwarded-host': 'evil.example',
        'x-forwarded-port': '443',
        'x-real-ip': '9.9.9.9',
        x_real_ip: '9.9.9.9',
        'x-request-id': 'chosen-by-client',
        'x-kept': 'a',
        __proto__field: 'b',
      },
    })
    const [seen] = backend.seen
    if (!seen) throw new Error('nothing arrived')
    const lines = (name: string): string[] => fieldLines(seen, name)
    expect(lines('host')).toEqual(['shop.example:81'])
    expect(lines('x-forwarded-for')).toEqual(['127.0.0.1'])
    expect(lines('x-forwarded-proto')).toEqual(['http'])
    expect(lines('x-forwarded-host')).toEqual(['shop.example:81'])
    expect(lines('x-real-ip')).toEqual(['127.0.0.1'])
    expect(lines('via')).toEqual(['1.1 sluice'])
    expect(lines('x-request-id')).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/)])
    expect(lines('x-kept')).toEqual(['a'])
    // A field name with any punctuation except `-` is not passed on.
    expect(lines('__proto__field')).toEqual([])
    for (const gone of [
      'x-gone',
      'keep-alive',
      'proxy-authorization',
      'te',
      'forwarded',
      'x-forwarded-port',
      'x_real_ip',
    ])
      expect(lines(gone), gone).toEqual([])
  })

  test('a request keeps the headers of a trusted proxy about earlier hops', async () => {
    const backend = await startBackend()
    const gateway = await startHosted({ UPSTREAM_URL: backend.url, TRUSTED_PROXIES: '127.0.0.1' })
    await gateway.send('GET', '/', {
      headers: {
        'x-forwarded-for': '8.8.8.8, 203.0.113.9',
        'x-forwarded-proto': 'https',
        'x-forwarded-port': '8443',
        'x-request-id': 'abc-1',
      },
    })
    const [seen] = backend.seen
    if (!seen) throw new Error('nothing arrived')
    expect(fieldLines(seen, 'x-forwarded-for')).toEqual(['8.8.8.8, 203.0.113.9, 127.0.0.1'])
    expect(fieldLines(seen, 'x-real-ip')).toEqual(['203.0.113.9'])
    expect(fieldLines(seen, 'x-forwarded-proto')).toEqual(['https'])
    expect(fieldLines(seen, 'x-forwarded-port')).toEqual(['8443'])
    expect(fieldLines(seen, 'x-request-id')).toEqual(['abc-1'])
  })
})

describe('a response comes back', () => {
  test('a response keeps its status, fields and body', async () => {
    const backend = await startBackend((_, response) => {
      response.writeHead(418, {
        'x-a': 'b',
        'set-cookie': ['c=d', 'e=f'],
        connection: 'x-hop',
        'x-hop': 'gone',
      })
      response.end('short and stout')
    })
    const gateway = await startHosted({ UPSTREAM_URL: backend.url })
    const reply = await gateway.send('GET', '/')
    expect(reply).toMatchObject({ status: 418, body: 'short and stout' })
    expect(reply.headers).toMatchObject({ 'x-a': 'b', 'set-cookie': ['c=d', 'e=f'] })
    expect(reply.headers['x-hop']).toBeUndefined()
  })

  test.each([204, 304])('%i has no body, and the connection goes on', async (status) => {
    const backend = await startBackend((_, response) => response.writeHead(status).end())
    const gateway = await startHosted({ UPSTREAM_URL: backend.url })
    const request = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
    const answers = await sendRaw(
      gateway.port,
      request + request.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'),
    )
    expect(answers.match(new RegExp(`HTTP/1.1 ${status}`, 'g'))).toHaveLength(2)
    expect(answers.match(/content-length|transfer-encoding/gi)).toBeNull()
  })

  test('a response to HEAD keeps the length of the body that is not sent', async () => {
    const backend = await startBackend((_, response) =>
      response.writeHead(200, { 'content-length': 7 }).end(),
    )
    const gateway = await startHosted({ UPSTREAM_URL: backend.url })
    const reply = await gateway.send('HEAD', '/')
    expect(reply).toMatchObject({ status: 200, body: '' })
    expect(reply.headers['content-length']).toBe('7')
  })

  test('an event is forwarded as soon as it is sent', async () => {
    let sendNext: (() => void) | undefined
    const backend = await startBackend((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      sendNext = () => response.write('data: one\n\n')
    })
    const gateway = await startHosted({ UPSTREAM_URL: backend.url })
    const request = httpRequest({ port: gateway.port, path: '/events' }).end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    sendNext?.()
    const [event] = (await once(response, 'data')) as [Buffer]
    expect(event.toString()).toBe('data: one\n\n')
    response.destroy()
  })

  test('an early response is forwarded while the request is still being sent', async () => {
    const backend = await startRawBackend((socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig'))
    })
    const gateway = await startHosted({ UPSTREAM_URL: backend.url })
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n'
    const answer = await sendRaw(gateway.port, head + 'x'.repeat(10_000))
    expect(answer).toMatch(/^HTTP\/1\.1 413 .*\r\n\r\nbig$/s)
    expect(answer).toMatch(/connection: close/i)
  })
})

describe('a request without content says so where content is expected', () => {
  const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'] as const
  const expected = methods.map((method) => ['POST', 'PUT', 'PATCH'].includes(method))

  test('to an HTTP/1.1 and an HTTP/2 backend, from a client of either version', async () => {
    const backend = await startBackend()
    const http2Backend = await startHttp2Backend()
    for (const url of [backend.url, http2Backend.url]) {
      const gateway = await startHosted({ UPSTREAM_URL: url })
      const session = connectHttp2(gateway.port, { cleartext: true })
      for (const method of methods) {
        await sendRaw(gateway.port, `${method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
        await sendHttp2(session, { ':method': method, ':path': '/', ':authority': 'a' })
      }
    }
    const lengths = [...backend.seen, ...http2Backend.seen].map(({ rawHeaders }) => {
      const at = rawHeaders.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'content-length')
      return at === -1 ? undefined : rawHeaders[at + 1]
    })
    const each = expected.flatMap((isSaid) => Array<string | undefined>(2).fill(isSaid ? '0' : undefined))
    expect(lengths).toEqual([...each, ...each])
  })
})

describe('the backend fails', () => {
  test('a refused connection to the backend is a 502 at once', async () => {
    const gateway = await startHosted({ UPSTREAM_URL: 'http://127.0.0.1:1' })
    const reply = await gateway.send('GET', '/')
    expect(reply).toMatchObject({ status: 502, body: '{"code":502,"error":"The backend cannot be reached"}' })
  })

  test('a backend that does not answer in time is a 504', async () => {
    const backend = await startRawBackend(() => undefined)
    const gateway = await startHosted({ UPSTREAM_URL: backend.url, UPSTREAM_TIMEOUT: '200ms' })
    expect(await gateway.send('GET', '/')).toMatchObject({
      status: 504,
      body: '{"code":504,"error":"The backend did not answer in time"}',
    })
  })

  test('a backend that does not speak HTTP is a 502, and the next request is served', async () => {
    const backend = await startRawBackend((socket, index) => {
      socket.once('data', () =>
        socket.end(index === 0 ? 'nonsense\r\n\r\n' : 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'),
      )
    })
    const gateway = await startHosted({ UPSTREAM_URL: backend.url })
    expect((await gateway.send('GET', '/')).status).toBe(502)
    expect((await gateway.send('GET', '/')).status).toBe(200)
  })

  test.each([
    ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart', '1.1'],
    ['chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n', '1.1'],
    [
      'chunks, to an HTTP/1.0 client',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n',
      '1.0',
    ],
  ])(
    'a backend that fails within a response by %s leaves the client no complete response',
    async (_, answer, version) => {
      const backend = await startRawBackend((socket) => {
        socket.once('data', () => {
          socket.write(answer)
          setTimeout(() => socket.destroy(), 100)
        })
      })
      const gateway = await startHosted({ UPSTREAM_URL: backend.url })
      const client = connect(gateway.port, '127.0.0.1')
      client.write(`GET / HTTP/${version}\r\nHost: a\r\n\r\n`)
      let received = ''
      client.on('data', (chunk) => (received += chunk.toString()))
      const [error] = (await Promise.race([
        once(client, 'error').then(([reset]) => [reset as NodeJS.ErrnoException]),
        once(client, 'close').then(() => [undefined]),
      ])) as [NodeJS.ErrnoException | undefined]
      expect(error?.code ?? received).toSatisfy(
        (end: string) => end === 'ECONNRESET' || !/0\r\n\r\n$/.test(end),
      )
      if (version === '1.0') expect(error?.code).toBe('ECONNRESET')
    },
  )

  test('a request without a body is retried on a fresh connection if its reused one turns out closed', async () => {
    const backend = await startRawBackend((socket) => {
      let served = 0
      socket.on('data', () => {
        if (served++ === 0)
          socket.write('HTTP/1.1 200 OK\r\nKeep-Alive: timeout=60\r\nContent-Length: 2\r\n\r\nok')
        else socket.destroy()
      })
    })
    const gateway = await startHosted({ UPSTREAM_URL: backend.url })
    const status = async (method: string, body?: string): Promise<number> =>
      (await gateway.send(method, '/', body === undefined ? {} : { body })).status
    expect(await status('GET')).toBe(200)
    expect(await status('GET')).toBe(200)
    expect(backend.connections).toHaveLength(2)
    expect(await status('POST', 'body')).toBe(502)
    expect(await status('GET')).toBe(200)
    expect(await status('POST')).toBe(502)
  })
})

test('a body over the limit: 413, by its declared length and while it streams', async () => {
  const backend = await startBackend()
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, MAX_BODY_SIZE: '1k' })
  const body = 'x'.repeat(1025)
  const expected = { status: 413, body: '{"code":413,"error":"The request body is too large"}' }
  expect(await gateway.send('POST', '/', { body })).toMatchObject(expected)
  expect(backend.seen).toHaveLength(0)
  expect(
    await gateway.send('POST', '/', { body, headers: { 'transfer-encoding': 'chunked' } }),
  ).toMatchObject(expected)
  expect((await gateway.send('POST', '/', { body: 'x'.repeat(1024) })).status).toBe(200)
})

test('Expect: 100-continue is answered only once the request is let pass', async () => {
  const backend = await startBackend()
  const gateway = await startHosted({ UPSTREAM_URL: backend.url })
  const head = 'POST /forgot-password HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n'
  for (let sent = 0; sent < 5; sent++) {
    const answer = await sendRaw(gateway.port, `${head}Connection: close\r\n\r\nhi`)
    expect(answer).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/)
  }
  expect(await sendRaw(gateway.port, `${head}\r\n`)).toMatch(/^HTTP\/1\.1 429 /)
  expect(backend.seen).toHaveLength(5)
})
