import { constants } from 'node:http2'
import { connect } from 'node:net'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import {
  connectRawHttp2,
  endHeaders,
  endStream,
  frame,
  frameTypes,
  preface,
  requestFields,
} from '../support/http/raw-http2.ts'

// Frames that are too short for their type, and a GOAWAY from a client.

const padded = 0x8
const priority = 0x20
const frameSizeError = constants.NGHTTP2_FRAME_SIZE_ERROR
const protocolError = constants.NGHTTP2_PROTOCOL_ERROR
const PRIORITY = 2

let gateway: HostedGateway

beforeAll(async () => {
  const backend = await startBackend()
  gateway = await startHosted({ UPSTREAM_URL: backend.url })
})

const request = (id: number) =>
  frame(frameTypes.headers, endHeaders | endStream, id, requestFields('GET', '/'))

describe('the connection ends with the code that RFC 9113 names', () => {
  test.each([
    [
      'PRIORITY of four bytes on a stream that is not open',
      frameSizeError,
      frame(PRIORITY, 0, 7, Buffer.alloc(4)),
    ],
    [
      'PRIORITY of six bytes on a stream that is not open',
      frameSizeError,
      frame(PRIORITY, 0, 7, Buffer.alloc(6)),
    ],
    ['GOAWAY without a body', frameSizeError, frame(frameTypes.goaway, 0, 0, Buffer.alloc(0))],
    ['GOAWAY of seven bytes', frameSizeError, frame(frameTypes.goaway, 0, 0, Buffer.alloc(7))],
    ...[0, 4].map(
      (length) =>
        [
          `HEADERS with a priority, of ${length} bytes`,
          frameSizeError,
          frame(frameTypes.headers, endHeaders | endStream | priority, 1, Buffer.alloc(length)),
        ] as const,
    ),
    [
      'HEADERS with padding and a priority, of five bytes',
      frameSizeError,
      frame(frameTypes.headers, endHeaders | endStream | padded | priority, 1, Buffer.alloc(5)),
    ],
    [
      'HEADERS with padding, without its length',
      frameSizeError,
      frame(frameTypes.headers, endHeaders | endStream | padded, 1, Buffer.alloc(0)),
    ],
    [
      'HEADERS with more padding than there is',
      protocolError,
      frame(frameTypes.headers, endHeaders | endStream | padded, 1, Buffer.of(4, 0, 0, 0)),
    ],
  ] as const)('%s', async (_, code, bytes) => {
    const raw = await connectRawHttp2(gateway.port, { cleartext: true })
    raw.send(bytes)
    const { payload } = await raw.waitFor(({ type }) => type === frameTypes.goaway)
    expect(payload.readUInt32BE(4)).toBe(code)
    await raw.closed
  })

  test('an acknowledgement as the first SETTINGS', async () => {
    const socket = connect(gateway.port, '127.0.0.1')
    let received = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => (received = Buffer.concat([received, chunk])))
    const closed = new Promise((resolve) => socket.on('close', resolve))
    socket.write(Buffer.concat([Buffer.from(preface), frame(frameTypes.settings, 1, 0, Buffer.alloc(0))]))
    await closed
    expect(received.at(-17 + 3)).toBe(frameTypes.goaway)
    expect(received.readUInt32BE(received.length - 4)).toBe(protocolError)
  })
})

test('PRIORITY of a wrong length on an open stream resets that stream', async () => {
  const raw = await connectRawHttp2(gateway.port, { cleartext: true })
  raw.send(
    frame(frameTypes.headers, endHeaders, 1, requestFields('POST', '/')),
    frame(PRIORITY, 0, 1, Buffer.alloc(4)),
    request(3),
  )
  const reset = await raw.waitFor(({ type, stream }) => type === frameTypes.rstStream && stream === 1)
  expect(reset.payload.readUInt32BE(0)).toBe(frameSizeError)
  await raw.waitFor(({ stream, flags }) => stream === 3 && (flags & endStream) !== 0)
})

describe('requests of a client that has sent GOAWAY are served', () => {
  const goaway = frame(frameTypes.goaway, 0, 0, Buffer.alloc(8))
  const isEndOf = (id: number) => (seen: { stream: number; flags: number }) =>
    seen.stream === id && (seen.flags & endStream) !== 0

  test.each([
    ['after it in one piece', [Buffer.concat([goaway, request(1)])], [1]],
    ['before it and after it', [Buffer.concat([request(1), goaway, request(3), request(5)])], [1, 3, 5]],
  ] as const)('requests %s are answered, and the connection ends', async (_, pieces, streams) => {
    const raw = await connectRawHttp2(gateway.port, { cleartext: true })
    for (const piece of pieces) raw.send(piece)
    for (const id of streams) await raw.waitFor(isEndOf(id))
    await raw.closed
  })

  test('after GOAWAY of the client, a connection without streams closes at once', async () => {
    const raw = await connectRawHttp2(gateway.port, { cleartext: true })
    raw.send(goaway)
    await raw.closed
  })
})
