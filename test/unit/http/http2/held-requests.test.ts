import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { HeldRequests } from '../../../../proxy/http/http2/held-requests.ts'
import { Http2Connection } from '../../../../proxy/http/http2/connection.ts'
import type { Http2Response } from '../../../../proxy/http/http2/response.ts'
import {
  endHeaders,
  endStream,
  frame,
  frameTypes,
  preface,
  requestFields,
  uint32,
} from '../../../support/http/raw-http2.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

class FakeSocket extends Duplex {
  override _read(): void {}
  override _write(_: unknown, __: unknown, callback: () => void): void {
    callback()
  }
}

const streams = Array.from({ length: 100 }, (_, i) => 2 * i + 1)
const closedWindow = Buffer.from([0, 4, 0, 0, 0, 0])
const requests = (ids: readonly number[]): Buffer =>
  Buffer.concat(
    ids.map((id) => frame(frameTypes.headers, endHeaders | endStream, id, requestFields('GET', '/'))),
  )

/** A connection with closed windows, whose requests get a kilobyte as soon as they are served. */
function connect() {
  const state = { served: 0, isPressed: true, nowMs: 0 }
  const responses: Http2Response[] = []
  const connection = new Http2Connection(new FakeSocket() as unknown as Socket, {
    maxHeaderBytes: 16 * 1024,
    maxStreams: 100,
    sendMs: 10_000,
    now: () => state.nowMs,
    isPressed: () => state.isPressed,
    clientOf: () => '',
    serve(_, response) {
      state.served++
      responses.push(response)
      response.writeHead(200, [])
      response.end(Buffer.alloc(1024))
    },
    onHeadersTooLarge: () => undefined,
    onMalformed: () => undefined,
    onException(error) {
      throw error
    },
  })
  connection.read(
    Buffer.concat([
      Buffer.from(preface),
      frame(frameTypes.settings, 0, 0, closedWindow),
      frame(frameTypes.windowUpdate, 0, 0, uint32(1_000_000)),
    ]),
  )
  const wait = async (ms: number): Promise<void> => {
    state.nowMs += ms
    vi.advanceTimersByTime(ms)
    // Written bytes are passed on in a later turn.
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  return { state, responses, connection, wait }
}

test('while unread responses take little memory, all requests of a connection are served', () => {
  const { state, connection } = connect()
  state.isPressed = false
  connection.read(requests(streams))
  expect(state.served).toBe(100)
})

test('while unread responses take much memory, a client that reads none gets few requests served, and one in two seconds', async () => {
  const { state, connection, wait } = connect()
  connection.read(requests(streams))
  expect(state.served).toBe(8)
  for (let i = 0; i < 20; i++) await wait(500)
  expect(state.served).toBe(13)
})

test('responses that were reset because nobody read them count as unread until there is memory', async () => {
  const { state, responses, connection, wait } = connect()
  connection.read(requests(streams))
  for (const response of responses) response.abort()
  await wait(250)
  expect(state.served).toBe(8)
  for (let i = 0; i < 20; i++) await wait(500)
  expect(state.served).toBe(13)
  state.isPressed = false
  await wait(250)
  expect(state.served).toBe(100)
})

test('a client that reads gets more and more of its requests served', async () => {
  const { state, connection, wait } = connect()
  connection.read(requests(streams))
  for (let i = 0; i < 20; i++) {
    connection.read(
      Buffer.concat(
        streams.slice(0, state.served).map((id) => frame(frameTypes.windowUpdate, 0, id, uint32(1024))),
      ),
    )
    await wait(1)
  }
  expect(state.served).toBe(100)
})

test('requests that were held back are served once there is memory', async () => {
  const { state, connection, wait } = connect()
  connection.read(requests(streams))
  state.isPressed = false
  await wait(250)
  expect(state.served).toBe(100)
})

test('held requests that the client resets are not served, and the timer ends with the connection', async () => {
  const { state, connection, wait } = connect()
  connection.read(requests(streams))
  connection.read(
    Buffer.concat(streams.slice(8).map((id) => frame(frameTypes.rstStream, 0, id, Buffer.alloc(4)))),
  )
  await wait(250)
  expect(state.served).toBe(8)
  connection.read(requests(streams.map((id) => id + 200)))
  connection.closeNow()
  state.isPressed = false
  await wait(250)
  expect(state.served).toBe(8)
})

test('a request with content is refused instead, so that no content is held in memory', () => {
  const { connection } = connect()
  connection.read(requests(streams.slice(0, 20)))
  connection.read(
    Buffer.concat(
      streams
        .slice(20)
        .flatMap((id) => [
          frame(frameTypes.headers, endHeaders, id, requestFields('POST', '/')),
          frame(frameTypes.data, 0, id, Buffer.alloc(16_000)),
        ]),
    ),
  )
  expect([...connection.streams.keys()]).toEqual(streams.slice(0, 20))
})

test('a connection that is being closed ends once the client has reset the requests that were held back', async () => {
  for (const ids of [streams.slice(0, 10), streams.slice(0, 10).toReversed()]) {
    const { connection, wait } = connect()
    connection.read(requests(streams.slice(0, 10)))
    connection.close()
    connection.read(Buffer.concat(ids.map((id) => frame(frameTypes.rstStream, 0, id, Buffer.alloc(4)))))
    await wait(250)
    expect(connection.isClosed).toBe(true)
  }
})

test('a held request is served once, even if serving it lets held requests go again', () => {
  const streams = new Map(
    [1, 3, 5].map((id) => [id, { id, isOpen: true, isUnread: false, isServed: false, client: '' }]),
  )
  const owner = { streams, openRequests: 0, responsesSent: 0, closeIfDone: () => undefined }
  const served: number[] = []
  const held = new HeldRequests(
    owner,
    () => false,
    () => 0,
    (stream: { id: number; isOpen: boolean; isUnread: boolean; isServed: boolean; client: string }) => {
      stream.isServed = true
      served.push(stream.id)
      held.serveIfAllowed()
    },
  )
  for (const stream of streams.values()) held.hold(stream)
  held.serveIfAllowed()
  expect(served).toEqual([1, 3, 5])
  expect(held.isEmpty).toBe(true)
})
