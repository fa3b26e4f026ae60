import { isDeepStrictEqual } from 'node:util'
import { FrameReader } from '../../../proxy/http/http2/frame-reader.ts'
import { ConnectionError, flags, frameTypes } from '../../../proxy/http/http2/frames.ts'
import { http2Preface } from '../../../proxy/http/message/http2-preface.ts'
import { HeaderBlock } from '../../../proxy/http/http2/header-block.ts'
import { HpackDecoder } from '../../../proxy/http/http2/hpack/decoder.ts'
import { byteByByte, fail } from '../pieces.ts'

const MAX_HEADER_BYTES = 16 * 1024

/** Frames of an HTTP/2 client after its preface, with their header blocks. They must read the same no matter how they are cut. */
export function fuzz(bytes: Buffer): void {
  const whole = read([http2Preface, bytes])
  const inPieces = read([http2Preface, ...byteByByte(bytes)])
  if (!isDeepStrictEqual(inPieces, whole)) fail('other pieces, another reading', { whole, inPieces })
}

/** One line per frame and header block, with the content of DATA frames joined. */
function read(pieces: readonly Buffer[]): string[] {
  const lines: string[] = []
  const decoder = new HpackDecoder(MAX_HEADER_BYTES)
  const block = new HeaderBlock(MAX_HEADER_BYTES)
  let data = ''
  const reader = new FrameReader({
    isClosed: false,
    onFrame: (type, flagBits, stream, payload) => {
      lines.push(`frame ${type} ${flagBits} ${stream} ${payload.toString('hex')}`)
      if (type === frameTypes.headers) block.begin(stream, flagBits, payload)
      else if (type === frameTypes.continuation && block.isOpen) block.add(payload)
      else return
      if ((flagBits & flags.endHeaders) !== 0)
        lines.push(
          `headers ${JSON.stringify(decoder.decode(block.take()))}, too large: ${decoder.isTooLarge}`,
        )
    },
    onDataFrame: (flagBits, stream, length) => lines.push(`data ${flagBits} ${stream} ${length}`),
    onData: (chunk, from, to) => (data += chunk.toString('hex', from, to)),
    onDataEnd: () => {
      lines.push(data)
      data = ''
    },
  })
  try {
    for (const piece of pieces) reader.read(piece)
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error
    return [...lines, error.message]
  }
  return [...lines, data]
}
