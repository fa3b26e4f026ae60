import {
  brotliDecompressSync,
  constants,
  gunzipSync,
  inflateRawSync,
  inflateSync,
  zstdDecompressSync,
} from 'node:zlib'

/** Maximum bytes of a body to read. */
const MAX_UNPACKED_BYTES = 64 * 1024
/**
 * Maximum bytes to read of a short compressed body. 35 bytes can decompress to 64 KiB that take more than a millisecond to read, each time
 * that a client sends them. With this bound, 35 bytes take at most half a millisecond, and 400 bytes a millisecond. Hundreds of similar
 * events in JSON, which gzip compresses to a 20th and brotli or zstd to a 50th, are still read; a list of thousands of zeros is not.
 */
const MAX_UNPACKED_OF_SHORT = 4 * 1024
const MAX_RATIO = 64
/** Maximum number of nested codings to decode. No framework decodes more. */
const MAX_CODINGS = 2

// Truncated data is decoded as far as possible, and a decompression bomb no further than any other body.
const finishFlush = constants.Z_SYNC_FLUSH
const zstd = {
  finishFlush: constants.ZSTD_e_flush,
  // 8 MiB (RFC 9659 section 3). By default, 24 bytes can request a window of 128 MiB, whose allocation takes half a millisecond.
  params: { [constants.ZSTD_d_windowLogMax]: 23 },
}

const unpackers: Readonly<Record<string, (packed: Buffer, maxOutputLength: number) => Buffer>> = {
  gzip: (packed, maxOutputLength) => gunzipSync(packed, { maxOutputLength, finishFlush }),
  'x-gzip': (packed, maxOutputLength) => gunzipSync(packed, { maxOutputLength, finishFlush }),
  // Some senders omit the zlib format, and some readers accept that (RFC 9110 section 8.4.1.2).
  deflate: (packed, maxOutputLength) =>
    ((packed[0] ?? 0) % 16 === 8 ? inflateSync : inflateRawSync)(packed, { maxOutputLength, finishFlush }),
  br: (packed, maxOutputLength) =>
    brotliDecompressSync(packed, { maxOutputLength, finishFlush: constants.BROTLI_OPERATION_FLUSH }),
  zstd: (packed, maxOutputLength) => zstdDecompressSync(packed, { maxOutputLength, ...zstd }),
}

/**
 * Decodes the `Content-Encoding` of a body, as frameworks such as Express do by default.
 *
 * @param codings the codings, in the order in which they were applied
 * @returns undefined if a coding is not supported, the data is invalid, or the body decodes to more bytes than are read
 */
export function unpack(bytes: Buffer, codings: readonly string[]): Buffer | undefined {
  if (codings.length === 0 || codings.length > MAX_CODINGS) return undefined
  const maxBytes = Math.min(MAX_UNPACKED_BYTES, MAX_UNPACKED_OF_SHORT + MAX_RATIO * bytes.length)
  let unpacked = bytes
  try {
    for (const coding of codings.toReversed()) {
      const unpacker = unpackers[coding]
      if (!unpacker) return undefined
      unpacked = unpacker(unpacked, maxBytes)
    }
  } catch {
    return undefined
  }
  return unpacked
}

/**
 * Names of codings that some server, proxy, framework or library decodes. They may be anywhere in the field, because a backend may search
 * it for `gzip`. Any other name, such as `utf-8`, `none` or `aws-chunked`, is a mistake that backends ignore or refuse.
 */
const packing =
  /zip|gz|flate|zlib|br|zst|compress|lz|xz|bz|7z|pack|snappy|sdch|dcb|dcz|exi|aes|crypt|base64|quoted-printable/

/** Whether a backend may decode the body to other bytes than those sent. */
export function mayBePacked(codings: readonly string[]): boolean {
  return codings.some((coding) => packing.test(coding))
}
