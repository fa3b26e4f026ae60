import { subscribe } from 'node:diagnostics_channel'
import { request as sendRequest, Agent } from 'node:http'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSluice, type Sluice } from '../../proxy/testing/embedded/start-sluice.ts'
import { startBackend, type Backend } from '../support/http/backend.ts'

// A backend sends a second response on a pooled connection at the worst moment: when the next request has taken the connection, but is not
// written yet. A request with a body is written only at the end of a turn of the event loop.

let backend: Backend
let gateway: Sluice
const agent = new Agent({ keepAlive: true })
/** The gateway's connections to the backend. */
const toBackend: Socket[] = []
/** The fault for the next connection that begins to send a request with a body. */
let onCork: ((socket: Socket) => void) | undefined

const stale = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstale')

beforeAll(async () => {
  backend = await startBackend((request, response) => {
    void text(request).then((body) => response.end(`${request.method} ${body.length} ${body.slice(-3)}`))
  })
  subscribe('net.client.socket', (message) => {
    const { socket } = message as { socket: Socket }
    socket.once('connect', () => {
      if (socket.remotePort !== backend.port) return
      toBackend.push(socket)
      const cork = socket.cork.bind(socket)
      socket.cork = () => {
        cork()
        const act = onCork
        onCork = undefined
        act?.(socket)
      }
    })
  })
  gateway = await startSluice({ upstream: `http://localhost:${backend.port}`, limits: [] })
})

afterAll(() => gateway.close())

function send(method: string, body: string, headers: Record<string, string> = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = sendRequest(gateway.url, { method, agent, headers }, (response) => {
      text(response).then((answer) => resolve(`${response.statusCode} ${answer}`), reject)
    })
    request.once('error', reject)
    request.end(body)
  })
}

const moments: readonly (readonly [string, (step: () => void) => void])[] = [
  ['in a microtask', (step) => queueMicrotask(step)],
  ['in the next tick', (step) => process.nextTick(step)],
]
const bodies: readonly (readonly [string, string, Record<string, string>])[] = [
  ['short', 'abc', {}],
  ['with a length', `${'x'.repeat(40_000)}end`, { 'content-length': '40003' }],
  ['in chunks', `${'x'.repeat(40_000)}end`, { 'transfer-encoding': 'chunked' }],
]
const cases = moments.flatMap(([moment, schedule]) =>
  bodies.flatMap(([name, body, headers]) =>
    ['POST', 'PUT'].map((method) => ({ moment, schedule, name, body, headers, method })),
  ),
)

test.each(cases)(
  'a response that comes $moment does not answer a $method whose body is $name; the request goes to another connection',
  async ({ schedule, method, body, headers }) => {
    expect(await send('POST', 'first')).toBe('200 POST 5 rst')
    const seen = backend.seen.length
    const before = toBackend.length
    onCork = (socket) => schedule(() => socket.emit('data', stale))
    expect(await send(method, body, headers)).toBe(`200 ${method} ${body.length} ${body.slice(-3)}`)
    expect(onCork).toBeUndefined()
    // The backend has seen the request once, on a new connection.
    expect(backend.seen.length - seen).toBe(1)
    expect(toBackend.length - before).toBe(1)
  },
)

test('a backend that answers every connection before a request is asked four times, and then it is 502', async () => {
  const repeat = (socket: Socket): void => {
    onCork = repeat
    queueMicrotask(() => socket.emit('data', stale))
  }
  onCork = repeat
  const seen = backend.seen.length
  expect(await send('POST', 'abc')).toMatch(/^502 /)
  onCork = undefined
  expect(backend.seen.length).toBe(seen)
})
