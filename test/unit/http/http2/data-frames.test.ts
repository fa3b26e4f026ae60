import { Duplex } from 'node:stream'
import type { Socket } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Http2Connection } from '../../../../proxy/http/http2/connection.ts'
import {
  endHeaders,
  endStream,
  frame,
  frameTypes,
  preface,
  requestFields,
} from '../../../support/http/raw-http2.ts'

type Seen = { pieces: string[]; ended: boolean }

class FakeSocket extends Duplex {
  override _read(): void {}
  override _write(_: unknown, __: unknown, callback: () => void): void {
    callback()
  }
}

/** A connection that reads its requests as they arrive. */
function open(streams: readonly number[]): { read: (bytes: Buffer) => void; seen: Map<string, Seen> } {
  const seen = new Map<string, Seen>()
  const connection = new Http2Connection(new FakeSocket() as unknown as Socket, {
    maxHeaderBytes: 16 * 1024,
    maxStreams: 100,
    sendMs: 10_000,
    now: () => 0,

    isPressed: () => false,
    clientOf: () => '',
    serve(request) {
      const mine: Seen = { pieces: [], ended: false }
      seen.set(request.url, mine)
      request.on('data', (piece: Buffer) => void mine.pieces.push(piece.toString('latin1')))
      request.on('end', () => void (mine.ended = true))
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
      frame(frameTypes.settings, 0, 0),
      ...streams.map((id) =>
        frame(frameTypes.headers, endHeaders, id, requestFields('POST', `/${id}`, ['a', 'b'])),
      ),
    ]),
  )
  return { read: connection.read, seen }
}

const padded = 0x8
type Data = { readonly stream: number; readonly content: string; readonly padding: number | undefined }

function encode({ stream, content, padding }: Data): Buffer {
  if (padding === undefined) return frame(frameTypes.data, 0, stream, Buffer.from(content))
  return frame(
    frameTypes.data,
    padded,
    stream,
    Buffer.concat([Buffer.of(padding), Buffer.from(content), Buffer.alloc(padding)]),
  )
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const streams = [1, 3, 5]

test('the content of all DATA frames of a read is emitted at once, by stream', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          stream: fc.constantFrom(...streams),
          content: fc.oneof(fc.constant('x'), fc.string({ minLength: 1, maxLength: 40 })),
          padding: fc.option(fc.integer({ min: 0, max: 3 }), { nil: undefined }),
        }),
        { maxLength: 300 },
      ),
      fc.array(fc.integer({ min: 1, max: 5_000 }), { minLength: 1, maxLength: 5 }),
      async (frames, lengths) => {
        const { read, seen } = open(streams)
        // Bodies flow from the next turn on.
        await nextTurn()
        const bytes = Buffer.concat([
          ...frames.map(encode),
          ...streams.map((id) => frame(frameTypes.data, endStream, id)),
        ])
        let reads = 0
        for (let at = 0; at < bytes.length; reads++) {
          const length = lengths[reads % lengths.length] ?? 1
          read(Buffer.from(bytes.subarray(at, at + length)))
          at += length
        }
        await nextTurn()
        for (const id of streams) {
          const { pieces, ended } = seen.get(`/${id}`) ?? { pieces: [], ended: false }
          const sent = frames.filter(({ stream }) => stream === id).map(({ content }) => content)
          expect(pieces.join('')).toBe(Buffer.from(sent.join('')).toString('latin1'))
          expect(ended).toBe(true)
          expect(pieces.length).toBeLessThanOrEqual(reads)
        }
      },
    ),
  )
})

test('content before trailers in the same read is emitted first, and content before a reset not at all', async () => {
  const { read, seen } = open([1, 3])
  await nextTurn()
  read(
    Buffer.concat([
      ...['a', 'b'].map((content) => encode({ stream: 1, content, padding: undefined })),
      ...['c', 'd'].map((content) => encode({ stream: 3, content, padding: undefined })),
      frame(frameTypes.headers, endHeaders | endStream, 1, Buffer.alloc(0)),
      frame(frameTypes.rstStream, 0, 3, Buffer.alloc(4)),
    ]),
  )
  await nextTurn()
  expect(seen.get('/1')).toEqual({ pieces: ['ab'], ended: true })
  expect(seen.get('/3')).toEqual({ pieces: [], ended: false })
})
