import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { expect, onTestFinished, test, vi } from 'vitest'
import { errors } from '../../../../shared/error-replies.ts'
import { sendError } from '../../../../proxy/http/fields/reply.ts'
import { Http2Connection } from '../../../../proxy/http/http2/connection.ts'
import type { Http2Request } from '../../../../proxy/http/http2/request.ts'
import type { Http2Response } from '../../../../proxy/http/http2/response.ts'
import { allow, answerOptions } from '../../../../proxy/request/local-replies.ts'
import {
  endHeaders,
  frame,
  frameTypes,
  preface,
  requestFields,
  uint32,
} from '../../../support/http/raw-http2.ts'
import { eventually } from '../../../support/wait/eventually.ts'

// What a client that does not read makes an HTTP/2 connection keep in memory, and for how long.

class FakeSocket extends Duplex {
  takes = true
  written = Buffer.alloc(0)
  override _read(): void {}
  override _write(bytes: Buffer, _: unknown, callback: () => void): void {
    this.written = Buffer.concat([this.written, bytes])
    if (this.takes) callback()
  }

  /** The last stream in each GOAWAY. */
  get lastStreams(): number[] {
    const found: number[] = []
    for (let at = 0; at < this.written.length; at += 9 + this.written.readUIntBE(at, 3))
      if (this.written[at + 3] === frameTypes.goaway) found.push(this.written.readUInt32BE(at + 9))
    return found
  }
}

const closedWindow = frame(frameTypes.settings, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]))
const ids = Array.from({ length: 100 }, (_, i) => 2 * i + 1)

function connect(serve: (request: Http2Request, response: Http2Response) => void, settings = closedWindow) {
  const socket = new FakeSocket()
  const requests: Http2Request[] = []
  const connection = new Http2Connection(socket as unknown as Socket, {
    maxHeaderBytes: 16 * 1024,
    maxStreams: 100,
    sendMs: 50,
    now: () => performance.now(),
    isPressed: () => false,
    serve(request, response) {
      requests.push(request)
      serve(request, response)
    },
    onHeadersTooLarge: () => undefined,
    onMalformed: () => undefined,
    onException(error) {
      throw error
    },
  })
  connection.read(Buffer.concat([Buffer.from(preface), settings]))
  return { socket, connection, requests }
}

const uploads = ids.map((id) =>
  Buffer.concat([
    frame(frameTypes.headers, endHeaders, id, requestFields('POST', '/')),
    ...Array.from({ length: 4 }, () => frame(frameTypes.data, 0, id, Buffer.alloc(16_000))),
  ]),
)

test.each<[string, (request: Http2Request, response: Http2Response) => void]>([
  ['an error', (request, response) => sendError(request, response, errors.forbidden)],
  ['405', (request, response) => sendError(request, response, errors.methodNotAllowed, allow)],
  ['OPTIONS', (_, response) => answerOptions(response)],
])('the content of a request that %s answers is dropped while the answer waits', async (_, serve) => {
  const { connection, requests } = connect(serve)
  for (const upload of uploads) connection.read(upload)
  await eventually('the content is dropped', () => {
    expect(requests.map(({ bufferedBytes }) => bufferedBytes)).toEqual(ids.map(() => 0))
  })
  connection.closeNow()
})

test('a client that resets its streams must read the output that was written before', async () => {
  const { socket, connection } = connect(
    (_, response) => {
      response.writeHead(200, [])
      response.end(Buffer.alloc(60_000))
    },
    frame(frameTypes.settings, 0, 0, Buffer.concat([Buffer.from([0, 4]), uint32(1_000_000)])),
  )
  socket.takes = false
  connection.read(frame(frameTypes.windowUpdate, 0, 0, uint32(10_000_000)))
  connection.read(frame(frameTypes.headers, endHeaders | 1, 1, requestFields('GET', '/')))
  connection.read(frame(frameTypes.headers, endHeaders | 1, 3, requestFields('GET', '/')))
  await eventually('the responses are written', () => expect(socket.writableNeedDrain).toBe(true))
  connection.read(Buffer.concat([1, 3].map((id) => frame(frameTypes.rstStream, 0, id, Buffer.alloc(4)))))
  await eventually('the connection is closed', () => expect(socket.destroyed).toBe(true))
})

test('a client that cancels too many requests gets those in flight answered', () => {
  const pending: Http2Response[] = []
  const { socket, connection } = connect(
    (_, response) => void pending.push(response),
    frame(frameTypes.settings, 0, 0),
  )
  const clock = vi.spyOn(performance, 'now').mockReturnValue(0)
  onTestFinished(() => clock.mockRestore())
  const request = (id: number): Buffer =>
    frame(frameTypes.headers, endHeaders | 1, id, requestFields('GET', '/'))
  connection.read(request(1))
  const cancel = (id: number): void =>
    connection.read(Buffer.concat([request(id), frame(frameTypes.rstStream, 0, id, uint32(8))]))
  for (let id = 3; id < 2 * 1_500; id += 2) cancel(id)
  expect(connection.openRequests).toBe(1)
  expect(connection.isClosed).toBe(false)
  // Further requests are not served, and a flood still ends the connection.
  const served = pending.length
  for (let id = 3_001; id < 30_000 && !connection.isClosed; id += 2) connection.read(request(id))
  expect(pending.length).toBe(served)
  expect(connection.isClosed).toBe(true)
  const [first, ...others] = socket.lastStreams
  expect(first).toBeGreaterThan(2_000)
  expect(others).toEqual([first])
})
