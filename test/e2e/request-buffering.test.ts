import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2 } from '../support/http/http2.ts'
import { parseExposition } from '../support/metrics/prometheus.ts'
import { atEndOfFile } from '../support/run/at-end.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

/*
 * The attack: clients send short bodies slowly, and each occupies a worker of a backend that has one worker for each connection. The
 * backend here answers once it has the whole request, and shows the received part before that.
 */

const seen: string[] = []
const sockets = new Set<Socket>()
let backendUrl = ''
let gateway: HostedGateway

beforeAll(async () => {
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    const place = seen.push('') - 1
    socket.on('data', (bytes) => {
      seen[place] = (seen[place] ?? '') + bytes.toString('latin1')
      if (isWhole(seen[place] ?? ''))
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok')
    })
  })
  atEndOfFile(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  backendUrl = `http://127.0.0.1:${address.port}`
  gateway = await startHosted({
    UPSTREAM_URL: backendUrl,
    CONFIG_FILE: writeConfigFile(
      'limits: [{ name: login, match: POST /login, requests: 5, window: 15m, countStatus: [401] }]',
    ),
  })
})

function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return false
  const length = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, end))?.[1]
  if (length !== undefined) return text.length - end - 4 >= Number(length)
  return !/\r\ntransfer-encoding/i.test(text.slice(0, end)) || text.endsWith('0\r\n\r\n')
}

/** The part of requests to this path that the backend has received. */
function seenAt(path: string): string | undefined {
  return seen.findLast((text) => text.includes(` ${path} HTTP/1.1\r\n`))
}

let paths = 0
function freshPath(): string {
  return `/upload-${++paths}`
}

async function open(port = gateway.port): Promise<{ socket: Socket; received: () => string }> {
  const socket = connect({ host: '127.0.0.1', port })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  let text = ''
  socket.on('data', (bytes: Buffer) => (text += bytes.toString('latin1')))
  onTestFinished(() => void socket.destroy())
  return { socket, received: () => text }
}

const form = 'Content-Type: application/x-www-form-urlencoded'
const head = (path: string, ...lines: string[]): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`

/** Sends a whole request: once the gateway has served it, it has also handled the requests sent before. */
async function settle(port = gateway.port): Promise<void> {
  const path = freshPath()
  const { socket, received } = await open(port)
  socket.write(head(path, 'Content-Length: 0'))
  await eventually('a request after it is answered', () => expect(received()).toContain('200 OK'))
}

describe('a body that is sent slowly', () => {
  test.each<[string, string[], string, string, string]>([
    ['with a length', ['Content-Length: 10'], 'a=', '12345678', 'content-length: 10'],
    ['of 64 KiB', ['Content-Length: 65536'], 'x'.repeat(65_000), 'x'.repeat(536), 'content-length: 65536'],
    [
      'of JSON with a length',
      ['Content-Type: application/json', 'Content-Length: 4'],
      '{ ',
      ' }',
      'content-length: 4',
    ],
    [
      'of a form in chunks',
      [form, 'Transfer-Encoding: chunked'],
      '2\r\na=\r\n',
      '3\r\n123\r\n0\r\n\r\n',
      'content-length: 5',
    ],
    [
      'of a form in chunks with a trailer',
      [form, 'Transfer-Encoding: chunked'],
      '2\r\na=\r\n',
      '0\r\nx-sum: 1\r\n\r\n',
      'content-length: 2',
    ],
  ])('%s takes no connection to the backend before it is whole', async (_, lines, first, rest, framing) => {
    const path = freshPath()
    const { socket, received } = await open()
    socket.write(head(path, ...lines) + first)
    await settle()
    expect(seenAt(path)).toBeUndefined()
    socket.write(rest)
    await eventually('the response', () => expect(received()).toContain('200 OK'))
    expect(seenAt(path)).toContain(`\r\n${framing}\r\n`)
  })

  test.each<[string, string[], string]>([
    ['with a length over 64 KiB', ['Content-Length: 65537'], 'abc'],
    ['in chunks, that may be answered before its end', ['Transfer-Encoding: chunked'], '3\r\nabc\r\n'],
    [
      'of a form in chunks once it is over 64 KiB',
      [form, 'Transfer-Encoding: chunked'],
      `11190\r\n${'abc'.repeat(23_344)}`,
    ],
    ['of a gRPC call', ['Content-Type: application/grpc', 'Content-Length: 10'], 'abc'],
    ['of a Connect stream', ['Content-Type: application/connect+json', 'Content-Length: 10'], 'abc'],
  ])('%s is streamed', async (_, lines, first) => {
    const path = freshPath()
    const { socket } = await open()
    socket.write(head(path, ...lines) + first)
    await eventually('the backend has the sent bytes', () => expect(seenAt(path) ?? '').toContain('abc'))
  })

  test('a body whose chunks arrive at once is forwarded with a length', async () => {
    const path = freshPath()
    const { socket, received } = await open()
    socket.write(`${head(path, 'Transfer-Encoding: chunked')}3\r\nabc\r\n0\r\n\r\n`)
    await eventually('the response', () => expect(received()).toContain('200 OK'))
    expect(seenAt(path)).toMatch(/\r\ncontent-length: 3\r\n\r\nabc$/)
  })

  test('a body that is sent slowly is asked for with 100 Continue', async () => {
    const path = freshPath()
    const { socket, received } = await open()
    socket.write(head(path, 'Content-Length: 2', 'Expect: 100-continue'))
    await eventually('100 Continue', () => expect(received()).toContain('100 Continue'))
    expect(seenAt(path)).toBeUndefined()
    socket.write('ok')
    await eventually('the response', () => expect(received()).toContain('200 OK'))
    expect(received().match(/100 Continue/g)).toHaveLength(1)
  })

  test('a slow body over HTTP/2 takes no connection before it is complete, whatever its windows are', async () => {
    const path = freshPath()
    const session = connectHttp2(gateway.port, { cleartext: true })
    onTestFinished(() => session.destroy())
    const stream = session.request({ ':method': 'POST', ':path': path, 'content-length': '60000' })
    stream.write('x'.repeat(59_999))
    await settle()
    expect(seenAt(path)).toBeUndefined()
    stream.end('x')
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
    expect(headers[':status']).toBe(200)
    stream.resume()
  })

  test('a slow body of a client that disconnects never becomes a request, and its reservation is refunded', async () => {
    const { socket } = await open()
    socket.write(head('/login', 'Content-Length: 10'))
    const before = await heldBytes()
    socket.write('a=')
    await eventually('it is held', async () => expect(await heldBytes()).toBeGreaterThan(before))
    socket.resetAndDestroy()
    await eventually('nothing is held', async () => expect(await heldBytes()).toBe(before))
    const { headers } = await gateway.send('POST', '/login', {})
    expect(headers['ratelimit']).toMatch(/^"login";r=5;/)
    expect(seen.filter((text) => text.startsWith('POST /login'))).toHaveLength(1)
  })
})

async function heldBytes(): Promise<number> {
  const text = await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`).then((reply) => reply.text())
  return parseExposition(text).value('sluice_table_entries', { table: 'held-bodies' })
}

test('REQUEST_BUFFERING holds longer bodies, and none with 0', async () => {
  const [more, none] = await Promise.all(
    ['200k', '0'].map((REQUEST_BUFFERING) => startHosted({ UPSTREAM_URL: backendUrl, REQUEST_BUFFERING })),
  )
  if (!more || !none) throw new Error('two gateways')
  const long = freshPath()
  const { socket, received } = await open(more.port)
  socket.write(head(long, 'Content-Length: 150000') + 'x'.repeat(149_999))
  await settle(more.port)
  expect(seenAt(long)).toBeUndefined()
  socket.write('x')
  await eventually('the response', () => expect(received()).toContain('200 OK'))
  const short = freshPath()
  const streamed = await open(none.port)
  streamed.socket.write(`${head(short, 'Content-Length: 10')}abc`)
  await eventually('the backend has the sent bytes', () => expect(seenAt(short) ?? '').toContain('abc'))
})
