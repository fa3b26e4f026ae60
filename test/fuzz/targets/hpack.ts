import { isDeepStrictEqual } from 'node:util'
import { ConnectionError } from '../../../proxy/http/http2/frames.ts'
import { HpackDecoder } from '../../../proxy/http/http2/hpack/decoder.ts'
import { HpackEncoder } from '../../../proxy/http/http2/hpack/encoder.ts'
import { fail } from '../pieces.ts'

const MAX_LIST_BYTES = 16 * 1024

/** Header blocks of a connection, each after a length byte. The encoder must reproduce the fields that were read. */
export function fuzz(bytes: Buffer): void {
  const decoder = new HpackDecoder(MAX_LIST_BYTES)
  const encoder = new HpackEncoder()
  const back = new HpackDecoder(MAX_LIST_BYTES)
  for (let at = 0; at < bytes.length;) {
    const end = at + 1 + (bytes[at] ?? 0)
    const block = bytes.subarray(at + 1, end)
    at = end
    let fields: string[]
    try {
      fields = decoder.decode(block)
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error
      return
    }
    if (decoder.isTooLarge) continue
    const again = back.decode(encoder.encode(0, undefined, fields))
    if (!isDeepStrictEqual(again, fields)) fail('the encoder has changed the fields', { fields, again })
  }
}
