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
  endStream,
  fieldBlock,
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
    clientOf: () => '',
    serve(request, response) {
      requests.push(request)
      serve(request, response)
    },
    onHeadersTooLarge(_, response) {
      response.writeHead(431, [])
      response.end()
    },
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

const request = (id: number, ...fields: (readonly [string, string])[]): Buffer =>
  frame(frameTypes.headers, endHeaders | endStream, id, requestFields('GET', '/', ...fields))
const trailers = (id: number): Buffer =>
  frame(frameTypes.headers, endHeaders | endStream, id, fieldBlock([['x-a', 'x']]))

// A proxy in front of the gateway passes on what each of its clients does.
test.each<[string, lastServed: number, (id: number) => Buffer[]]>([
  ['are cancelled', 2_000, (id) => [request(id), frame(frameTypes.rstStream, 0, id, uint32(8))]],
  ['get a WINDOW_UPDATE of 0', 200, (id) => [request(id), frame(frameTypes.windowUpdate, 0, id, uint32(0))]],
  ['have DATA after their end', 200, (id) => [request(id), frame(frameTypes.data, 0, id, Buffer.alloc(1))]],
  ['have HEADERS after their end', 200, (id) => [request(id), trailers(id)]],
  ['are malformed', 200, (id) => [request(id, ['x-a', 'a\x01b'])]],
  ['are too large', 1_900, (id) => [request(id, ['x-a', 'x'.repeat(8_080)], ['x-b', 'x'.repeat(8_080)])]],
])('if too many requests of a client %s, those in flight are answered', async (_, lastServed, faulty) => {
  const pending: Http2Response[] = []
  const { socket, connection } = connect(
    (_, response) => void pending.push(response),
    frame(frameTypes.settings, 0, 0),
  )
  const clock = vi.spyOn(performance, 'now').mockReturnValue(0)
  onTestFinished(() => clock.mockRestore())
  connection.read(request(1))
  for (let id = 3; id < 2 * 1_500; id += 2) {
    connection.read(Buffer.concat(faulty(id)))
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(connection.openRequests).toBe(1)
  expect(connection.isClosed).toBe(false)
  // Further requests are not served, and a flood still ends the connection.
  const served = pending.length
  for (let id = 3_001; id < 30_000 && !connection.isClosed; id += 2) connection.read(request(id))
  expect(pending.length).toBe(served)
  expect(connection.isClosed).toBe(true)
  const [first, ...others] = socket.lastStreams
  expect(first).toBeGreaterThan(lastServed)
  expect(others).toEqual([first])
})
