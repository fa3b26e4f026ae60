import {
  brotliDecompressSync,
  constants,
  gunzipSync,
  inflateRawSync,
  inflateSync,
  zstdDecompressSync,
} from 'node:zlib'

/** As much as is read of any body. */
const MAX_UNPACKED_BYTES = 64 * 1024
/** Codings within one another that are taken off: no framework takes off more. */
const MAX_CODINGS = 2

// A text that was cut off is read as far as it goes, and a bomb no further than any other body.
const maxOutputLength = MAX_UNPACKED_BYTES
const zlib = { maxOutputLength, finishFlush: constants.Z_SYNC_FLUSH }

const unpackers: Readonly<Record<string, (packed: Buffer) => Buffer>> = {
  gzip: (packed) => gunzipSync(packed, zlib),
  'x-gzip': (packed) => gunzipSync(packed, zlib),
  // RFC 9110 section 8.4.1.2: some senders leave the zlib format out, and some readers allow for it.
  deflate: (packed) => ((packed[0] ?? 0) % 16 === 8 ? inflateSync : inflateRawSync)(packed, zlib),
  br: (packed) =>
    brotliDecompressSync(packed, { maxOutputLength, finishFlush: constants.BROTLI_OPERATION_FLUSH }),
  zstd: (packed) => zstdDecompressSync(packed, { maxOutputLength, finishFlush: constants.ZSTD_e_flush }),
}

/**
 * Takes the `Content-Encoding` off a body, as frameworks such as Express do by themselves.
 *
 * @param codings in the order in which they were applied
 * @returns undefined where it is packed otherwise, or unpacks to more than `MAX_UNPACKED_BYTES`
 */
export function unpack(bytes: Buffer, codings: readonly string[]): Buffer | undefined {
  if (codings.length === 0 || codings.length > MAX_CODINGS) return undefined
  let unpacked = bytes
  try {
    for (const coding of codings.toReversed()) {
      const unpacker = unpackers[coding]
      if (!unpacker) return undefined
      unpacked = unpacker(unpacked)
    }
  } catch {
    return undefined
  }
  return unpacked
}
