import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect } from 'node:tls'
import { passes } from '../wait/passes.ts'

/** RFC 9113 section 6. */
export const frameTypes = {
  data: 0,
  headers: 1,
  rstStream: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

export const endStream = 0x1
export const endHeaders = 0x4

export type Frame = {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

/** An HTTP/2 connection on which every frame is written by hand. */
export type RawHttp2 = {
  readonly socket: Socket
  /** All frames that have arrived. */
  readonly received: readonly Frame[]
  send(...frames: Buffer[]): void
  /**
   * Resolves with the first frame, received already or still to come, that passes `test`. Rejects if the connection ends first.
   *
   * @param from how many of the first frames to skip, 0 unless given
   */
  waitFor(test: (frame: Frame) => boolean, from?: number): Promise<Frame>
  /** Resolves when the connection is closed. */
  readonly closed: Promise<unknown>
}

export const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'

/**
 * Connects by TLS and sends the preface with empty settings.
 *
 * @param hangsUp whether it closes its side too when the server has closed the connection
 * @param cleartext connects without TLS, with prior knowledge
 * @param inPieces sends the preface and the settings byte by byte
 * @param before the bytes sent before the preface
 */
export async function connectRawHttp2(
  port: number,
  { hangsUp = true, cleartext = false, inPieces = false, before = '' } = {},
): Promise<RawHttp2> {
  const tcp = connectTcp({ host: '127.0.0.1', port, allowHalfOpen: !hangsUp, noDelay: true })
  const socket = cleartext ? tcp : connect({ socket: tcp, ALPNProtocols: ['h2'], rejectUnauthorized: false })
  await once(socket, cleartext ? 'connect' : 'secureConnect')
  const received: Frame[] = []
  const waiting = new Set<() => void>()
  let bytes = Buffer.alloc(0)
  socket.on('error', () => undefined)
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    while (bytes.length >= 9 && bytes.length >= 9 + bytes.readUIntBE(0, 3)) {
      const end = 9 + bytes.readUIntBE(0, 3)
      received.push({
        type: bytes.readUInt8(3),
        flags: bytes.readUInt8(4),
        stream: bytes.readUInt32BE(5),
        payload: bytes.subarray(9, end),
      })
      bytes = bytes.subarray(end)
    }
    for (const wake of waiting) wake()
  })
  const closed = new Promise((resolve) => socket.once('close', resolve))
  void closed.then(() => waiting.forEach((wake) => wake()))
  const first = Buffer.concat([Buffer.from(before + preface), frame(frameTypes.settings, 0, 0)])
  for (const piece of inPieces ? Array.from(first, (byte) => Buffer.of(byte)) : [first]) {
    socket.write(piece)
    if (inPieces) await passes(1)
  }
  return {
    socket,
    received,
    closed,
    send(...frames) {
      if (!socket.destroyed) socket.write(Buffer.concat(frames))
    },
    waitFor: (test, from = 0) =>
      new Promise((resolve, reject) => {
        let looked = from
        const look = (): void => {
          const found = received.slice(looked).find(test)
          looked = received.length
          if (!found && !socket.destroyed) return
          waiting.delete(look)
          if (found) resolve(found)
          else reject(new Error('the connection ended before the frame came'))
        }
        waiting.add(look)
        look()
      }),
  }
}

export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** A field block of literals without indexing or Huffman coding (RFC 7541 section 6.2.2). */
export function fieldBlock(fields: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(
    fields.flatMap(([name, value]) => [Buffer.from([0]), lengthPrefixed(name), lengthPrefixed(value)]),
  )
}

/** The fields of a request: the four that every request has, then the given ones. */
export function requestFields(
  method: string,
  path: string,
  ...fields: (readonly [string, string])[]
): Buffer {
  return fieldBlock([
    [':method', method],
    [':scheme', 'https'],
    [':authority', 'a.example'],
    [':path', path],
    ...fields,
  ])
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function lengthPrefixed(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1')
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes])
  // An integer beyond its seven-bit prefix (RFC 7541 section 5.1).
  const rest: number[] = []
  let left = bytes.length - 127
  while (left >= 128) {
    rest.push((left % 128) + 128)
    left = Math.floor(left / 128)
  }
  return Buffer.concat([Buffer.from([127, ...rest, left]), bytes])
}
