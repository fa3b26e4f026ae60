import type { Socket } from 'node:net'
import { parseArgs } from 'node:util'
import { endHeaders, frame, frameTypes, preface, requestFields, uint32 } from '../support/http/raw-http2.ts'
import { keepCrowd } from './crowd.ts'

// Clients that send or request a body in pieces of one byte, at a fixed rate of bytes a second that includes the framing. A closed
// connection is replaced.

const { values } = parseArgs({
  strict: false,
  options: {
    kind: { type: 'string', default: 'chunks' },
    /** Bytes a second on each connection. */
    rate: { type: 'string', default: '1000000' },
  },
})
const tickMs = 10
const bytesPerTick = (Number(values.rate) * tickMs) / 1_000
const padded = 0x8
const uploadHead = 'POST /pieces HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'
const manyStreams = Array.from({ length: 100 }, (_, i) => 2 * i + 1)

type Kind = {
  readonly alpn: 'http/1.1' | 'h2'
  readonly begin: string | Buffer
  /** Sent repeatedly. */
  readonly piece: string | Buffer
}

const beginHttp2 = (
  streams: readonly number[],
  method: string,
  path: string,
  ...settings: Buffer[]
): Buffer =>
  Buffer.concat([
    Buffer.from(preface),
    frame(frameTypes.settings, 0, 0, Buffer.concat(settings)),
    ...streams.map((id) => frame(frameTypes.headers, endHeaders, id, requestFields(method, path))),
  ])
const closedWindow = Buffer.from([0, 4, 0, 0, 0, 0])
const oneByte = Buffer.from('x')

const kinds: Readonly<Record<string, Kind>> = {
  chunks: { alpn: 'http/1.1', begin: uploadHead, piece: '1\r\nx\r\n' },
  extensions: { alpn: 'http/1.1', begin: uploadHead, piece: '1;a=b\r\nx\r\n' },
  data: {
    alpn: 'h2',
    begin: beginHttp2([1], 'POST', '/pieces'),
    piece: frame(frameTypes.data, 0, 1, oneByte),
  },
  'data-on-many-streams': {
    alpn: 'h2',
    begin: beginHttp2(manyStreams, 'POST', '/pieces'),
    piece: Buffer.concat(manyStreams.map((id) => frame(frameTypes.data, 0, id, oneByte))),
  },
  padded: {
    alpn: 'h2',
    begin: beginHttp2([1], 'POST', '/pieces'),
    piece: frame(frameTypes.data, padded, 1, Buffer.from('\x01x\x00')),
  },
  // Each of these pieces allows one byte of a response.
  windows: {
    alpn: 'h2',
    begin: beginHttp2(manyStreams, 'GET', '/bytes/60000', closedWindow),
    piece: Buffer.concat(manyStreams.map((id) => frame(frameTypes.windowUpdate, 0, id, uint32(1)))),
  },
  'connection-windows': {
    alpn: 'h2',
    begin: beginHttp2([1], 'GET', '/bytes/60000', closedWindow),
    piece: frame(frameTypes.windowUpdate, 0, 0, uint32(1)),
  },
  'endless-heads': { alpn: 'http/1.1', begin: 'GET / HTTP/1.1\r\nHost: a\r\n', piece: 'a:\r\n' },
  // The backend sends the pieces.
  responses: { alpn: 'http/1.1', begin: 'GET /tiny-chunks HTTP/1.1\r\nHost: a\r\n\r\n', piece: '' },
}

const kind = kinds[String(values.kind)]
if (!kind) throw new Error(`no such kind: ${String(values.kind)}`)
let sent = 0
let received = 0

keepCrowd(attack, () => ({ sent, received }), { alpn: kind.alpn })

function attack(socket: Socket): void {
  if (!kind) return
  socket.setNoDelay(true)
  socket.write(kind.begin)
  socket.on('data', (bytes: Buffer) => (received += bytes.length))
  if (kind.piece.length === 0) return
  const piece = Buffer.from(kind.piece)
  const pieces = Buffer.concat(Array.from({ length: Math.ceil(65_536 / piece.length) }, () => piece))
  const begunMs = performance.now()
  let mine = 0
  const timer = setInterval(() => {
    const due = Math.min(((performance.now() - begunMs) / tickMs) * bytesPerTick - mine, pieces.length)
    const bytes = Math.floor(due / piece.length) * piece.length
    if (bytes <= 0 || socket.writableNeedDrain) return
    socket.write(pieces.subarray(0, bytes))
    mine += bytes
    sent += bytes
  }, tickMs)
  socket.once('close', () => clearInterval(timer))
}
