import { once, type EventEmitter } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend, startRawBackend, type Backend } from '../support/http/backend.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { send, startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { connectHttp2 } from '../support/http/http2.ts'
import {
  connectRawHttp2,
  endHeaders,
  endStream,
  frame,
  frameTypes,
  requestFields,
  uint32,
  type RawHttp2,
} from '../support/http/raw-http2.ts'
import { watchForBusyMachine } from '../support/load/busy-machine.ts'
import { eventually } from '../support/wait/eventually.ts'

const settings = {
  HEADERS_TIMEOUT: '400ms',
  BODY_TIMEOUT: '400ms',
  MIN_BODY_RATE: '100',
  SEND_TIMEOUT: '500ms',
  IDLE_TIMEOUT: '300ms',
}

/** How each request at the backend ended. */
const ended: string[] = []
/** When the backend answered each path that begins with /later. */
const answeredAtMs = new Map<string, number>()
let backend: Backend
let gateway: GatewayProcess
let secure: GatewayProcess

beforeAll(async () => {
  backend = await startBackend((request, response) => {
    request.on('aborted', () => ended.push(`${request.url} cut off`))
    response.on('close', () => response.writableFinished || ended.push(`${request.url} left`))
    if (request.url?.startsWith('/large')) response.end(Buffer.alloc(16 * 1024 * 1024))
    else if (request.url === '/page') response.end(Buffer.alloc(60_000))
    else if (request.url?.startsWith('/later'))
      setTimeout(() => {
        answeredAtMs.set(request.url ?? '', performance.now())
        response.end('later')
      }, 1_000)
    else request.resume().on('end', () => response.end('ok'))
  })
  gateway = await startGateway({ UPSTREAM_URL: backend.url, ...settings })
  secure = await startGateway({ UPSTREAM_URL: backend.url, ...settings, ...tlsSettings() })
})

/** Sends `begin` and then one byte at a time, until the connection is closed. */
async function trickle(
  begin: string,
  everyMs: number,
  byte = 'x',
): Promise<{ received: string; expectWithin: (maxMs: number) => void }> {
  const judge = watchForBusyMachine()
  const startedMs = performance.now()
  const socket = connect({ host: '127.0.0.1', port: gateway.port, noDelay: true })
  let received = ''
  socket.on('data', (chunk) => (received += chunk.toString('latin1')))
  socket.on('error', () => undefined)
  socket.write(begin)
  const timer = setInterval(() => socket.writable && socket.write(byte), everyMs)
  // Not `once` of node:events, which rejects if an error comes first.
  await new Promise((resolve) => socket.once('close', resolve))
  clearInterval(timer)
  const ms = performance.now() - startedMs
  return { received, expectWithin: (maxMs) => judge('until the connection is closed', ms, maxMs) }
}

describe.concurrent('a client that sends too slowly', () => {
  test('a client that sends its head too slowly gets 408, and the connection ends although the client stays', async () => {
    const { received, expectWithin } = await trickle('GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ', 20)
    expect(received).toMatch(/^HTTP\/1\.1 408 .*\r\nconnection: close\r\n\r\n{"code":408,/s)
    expectWithin(3_500)
  })

  test('a client that sends nothing has its connection closed without a response', async () => {
    const { received, expectWithin } = await trickle('', 1_000_000)
    expect(received).toBe('')
    expectWithin(1_500)
  })

  test.each([
    ['nothing of it', 'Content-Length: 1000000\r\n\r\n', 1_000_000, 'x'],
    ['a byte now and then', 'Content-Length: 1000000\r\n\r\n', 50, 'x'],
    ['chunks of a byte', 'Transfer-Encoding: chunked\r\n\r\n', 50, '1\r\nx\r\n'],
  ])(
    'a client that sends its body too slowly, %s, gets 408, and the request to the backend is aborted',
    async (_, framing, everyMs, byte) => {
      const path = `/slow-${everyMs}-${framing.length}`
      const { received } = await trickle(`POST ${path} HTTP/1.1\r\nHost: a\r\n${framing}`, everyMs, byte)
      expect(received).toMatch(
        /^HTTP\/1\.1 408 .*\r\nconnection: close\r\n.*"The request did not arrive in time"}$/is,
      )
      await eventually('the request is cut off', () => ended.includes(`${path} cut off`))
    },
  )

  test('a client that sends a short body too slowly gets 408, and the backend gets no request', async () => {
    const { received } = await trickle(
      'POST /slow-short HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n',
      50,
    )
    expect(received).toMatch(/^HTTP\/1\.1 408 /)
    expect(ended.join()).not.toContain('/slow-short')
  })

  test('a client that sends a refused body too slowly has its connection closed', async () => {
    for (let sent = 0; sent < 5; sent++) await send(gateway.port, 'POST', '/forgot-password')
    const head = 'POST /forgot-password HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n'
    const { received, expectWithin } = await trickle(head, 50)
    expect(received).toMatch(/^HTTP\/1\.1 429 /)
    expectWithin(1_500)
  })

  test('a client that sends slowly but steadily is not disconnected', async () => {
    const socket = connect(gateway.port, '127.0.0.1')
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n')
    const timer = setInterval(() => socket.write('x'.repeat(20)), 25)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    clearInterval(timer)
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /)
    socket.destroy()
  })

  test('a client that sends its body too slowly over HTTP/2 gets 408', async () => {
    const stream = connectHttp2(secure.port).request({ ':method': 'POST', ':path': '/slow-stream' })
    stream.write('x')
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
    expect(headers[':status']).toBe(408)
    stream.resume()
    await once(stream, 'close')
    expect(stream.rstCode).toBe(0)
    await eventually('the stream is cut off', () => ended.includes('/slow-stream cut off'))
  })
})

describe.concurrent('a client that does not read', () => {
  test('an unread long response resets the connection, and aborts the request to the backend', async () => {
    const socket = connect(gateway.port, '127.0.0.1')
    socket.write('GET /large-unread HTTP/1.1\r\nHost: a\r\n\r\n')
    socket.pause()
    await eventually('the client is gone', () => ended.includes('/large-unread left'))
    socket.resume()
    const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException]
    expect(error.code).toBe('ECONNRESET')
  })

  test('a client that reads before each timeout is not disconnected', async () => {
    const socket = connect(gateway.port, '127.0.0.1')
    socket.write('GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    let bytes = 0
    let rests = 0
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      // Eight pauses, together longer than the timeout, but each far shorter, so that even on a busy machine no pause exceeds it.
      if (bytes > 1_800_000 * (rests + 1) && rests++ < 8) {
        socket.pause()
        setTimeout(() => socket.resume(), 125)
      }
    })
    await once(socket, 'end')
    expect(bytes).toBeGreaterThan(16 * 1024 * 1024)
  })

  test('unread responses to many pipelined requests reset the connection', async () => {
    const socket = connect(gateway.port, '127.0.0.1')
    socket.pause()
    const pump = setInterval(() => {
      if (socket.writableLength < 1_000_000) socket.write('GET /x HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1_000))
    }, 5)
    await expect(once(socket, 'close')).rejects.toThrow(/ECONNRESET|EPIPE/)
    clearInterval(pump)
  })

  test('unread HTTP/2 responses reset their streams', async () => {
    const raw = await connectRawHttp2(secure.port)
    // An empty window for every stream: RFC 9113 section 6.5.2, SETTINGS_INITIAL_WINDOW_SIZE.
    raw.send(frame(frameTypes.settings, 0, 0, Buffer.concat([Buffer.from([0, 4]), uint32(0)])))
    for (const [id, path] of [
      [1, '/large'],
      [3, '/small'],
    ] as const)
      raw.send(frame(frameTypes.headers, endHeaders | endStream, id, requestFields('GET', path)))
    for (const id of [1, 3])
      await raw.waitFor(({ type, stream }) => type === frameTypes.rstStream && stream === id)
    raw.socket.destroy()
  })

  test('a client that reads a short HTTP/2 response slowly but steadily gets all of it', async () => {
    const steady = await startGateway({ UPSTREAM_URL: backend.url, ...settings, SEND_TIMEOUT: '2s' })
    const raw = await connectRawHttp2(steady.port, { cleartext: true })
    raw.send(
      frame(frameTypes.settings, 0, 0, Buffer.concat([Buffer.from([0, 4]), uint32(0)])),
      frame(frameTypes.headers, endHeaders | endStream, 1, requestFields('GET', '/page')),
    )
    await raw.waitFor(({ type, stream }) => type === frameTypes.headers && stream === 1)
    const read = (): number =>
      raw.received.reduce(
        (bytes, { type, payload }) => bytes + (type === frameTypes.data ? payload.length : 0),
        0,
      )
    for (let due = 1_000; due <= 60_000; due += 1_000) {
      raw.send(frame(frameTypes.windowUpdate, 0, 1, uint32(1_000)))
      await eventually('the next thousand bytes arrive', () => expect(read()).toBe(due))
      await sleep(50)
    }
    expect(raw.received.filter(({ type }) => type === frameTypes.rstStream)).toEqual([])
    raw.socket.destroy()
  })

  test('a client with the largest HTTP/2 windows that does not read is disconnected', async () => {
    const unread = await startGateway({ UPSTREAM_URL: backend.url, ...settings, ...tlsSettings() })
    const raw = await connectRawHttp2(unread.port)
    const most = 2 ** 31 - 1
    raw.send(
      frame(frameTypes.settings, 0, 0, Buffer.concat([Buffer.from([0, 4]), uint32(most)])),
      frame(frameTypes.windowUpdate, 0, 0, uint32(most - 65_535)),
      frame(frameTypes.headers, endHeaders | endStream, 1, requestFields('GET', '/large')),
    )
    await raw.waitFor(({ type }) => type === frameTypes.data)
    raw.socket.pause()
    const connections = async (): Promise<string | undefined> =>
      /^sluice_connections (\d+)$/m.exec((await send(unread.adminPort, 'GET', '/metrics')).body)?.[1]
    await eventually('the connection is closed', async () => expect(await connections()).toBe('0'), {
      endMs: 8_000,
    })
    raw.socket.destroy()
  })
})

describe.concurrent('a client is not disconnected for', () => {
  test('a backend that is slow to answer', async () => {
    expect((await send(gateway.port, 'GET', '/later')).body).toBe('later')
    expect((await send(gateway.port, 'POST', '/later', { body: 'x' })).body).toBe('later')
  })

  test('a backend that does not read the body', async () => {
    let taken = 0
    const stalling = await startRawBackend((socket) => {
      socket.pause()
      setTimeout(() => socket.resume(), 1_000)
      socket.on('data', (chunk) => {
        taken += chunk.length
        if (taken > 16 * 1024 * 1024) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
      })
    })
    const patient = await startGateway({ UPSTREAM_URL: stalling.url, ...settings })
    const body = Buffer.alloc(16 * 1024 * 1024)
    expect((await send(patient.port, 'POST', '/', { body })).status).toBe(200)
  })
})

describe.concurrent('a connection without requests', () => {
  const closedWithin = async (maxMs: number, connection: EventEmitter): Promise<void> => {
    const judge = watchForBusyMachine()
    const startedMs = performance.now()
    await once(connection, 'close')
    judge('until the connection is closed', performance.now() - startedMs, maxMs)
  }

  test('an idle HTTP/1.1 connection is closed', async () => {
    const sentAtMs = performance.now()
    const socket = connect(gateway.port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await once(socket, 'data')
    // Node keeps the connection a second longer than it announces.
    await closedWithin(2_500, socket)
    // The client may have read the response late.
    expect(performance.now() - sentAtMs).toBeGreaterThan(250)
  })

  test.each([
    ['over HTTP/1.1', (): GatewayProcess => gateway],
    ['over HTTP/1.1 with TLS', (): GatewayProcess => secure],
  ])('%s is closed, although empty lines keep coming', async (_, to) => {
    const { port, isSecure } = { port: to().port, isSecure: to() === secure }
    const socket = isSecure ? connectTls({ port, rejectUnauthorized: false }) : connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await once(socket.resume(), 'data')
    const timer = setInterval(() => socket.write('\r\n'), 100)
    const judge = watchForBusyMachine()
    const startedMs = performance.now()
    await new Promise((resolve) => socket.once('close', resolve))
    clearInterval(timer)
    judge('until the connection is closed', performance.now() - startedMs, 5_000)
  })

  test('an HTTP/1.1 connection may begin its next request late, and then send the rest of the head late too', async () => {
    const socket = connect(gateway.port, '127.0.0.1')
    let received = ''
    socket.on('data', (chunk) => (received += chunk.toString()))
    for (let request = 1; request <= 8; request++) {
      socket.write('GET / HTTP/1.1\r\n')
      await sleep(50)
      socket.write('Host: a\r\n\r\n')
      await eventually('the response has begun', () => received.split('HTTP/1.1 200').length > request)
      await sleep(500)
    }
    socket.destroy()
  })

  test('an idle HTTP/2 connection is closed, before its first request and after', async () => {
    const unused = connectHttp2(secure.port)
    await once(unused, 'connect')
    await closedWithin(1_000, unused)
    const session = connectHttp2(secure.port)
    const stream = session.request({ ':path': '/later-once' })
    await once(stream.resume(), 'end')
    await closedWithin(1_000, session)
    expect(performance.now() - (answeredAtMs.get('/later-once') ?? Infinity)).toBeGreaterThan(200)
  })

  describe.concurrent('an HTTP/2 connection is closed even if its client ignores GOAWAY', () => {
    /** Sends pings until the connection is closed, as such a client notices the close only by sending. */
    const untilCutOff = async (raw: RawHttp2): Promise<void> => {
      const timer = setInterval(() => raw.send(frame(frameTypes.ping, 0, 0, Buffer.alloc(8))), 50)
      await raw.closed
      clearInterval(timer)
    }

    test('before its first request', async () => {
      const raw = await connectRawHttp2(secure.port, { hangsUp: false })
      await untilCutOff(raw)
      expect(raw.received.map(({ type }) => type)).toContain(frameTypes.goaway)
    })

    test('after a request', async () => {
      const raw = await connectRawHttp2(secure.port, { hangsUp: false })
      raw.send(frame(frameTypes.headers, endHeaders | endStream, 1, requestFields('GET', '/')))
      await untilCutOff(raw)
      expect(raw.received.map(({ type }) => type)).toContain(frameTypes.goaway)
    })
  })

  test('a connection that does not finish its TLS handshake is closed', async () => {
    const socket = connect(secure.port, '127.0.0.1')
    await closedWithin(1_000, socket)
  })
})

test('the gateway has no connection left in memory after the slow clients', async () => {
  for (const { adminPort } of [gateway, secure]) {
    const { body } = await send(adminPort, 'GET', '/metrics')
    expect(body).toMatch(/^sluice_connections 0$/m)
  }
})
