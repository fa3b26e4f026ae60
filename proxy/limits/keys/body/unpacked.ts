import {
  brotliDecompressSync,
  constants,
  gunzipSync,
  inflateRawSync,
  inflateSync,
  zstdDecompressSync,
} from 'node:zlib'

/** Maximum bytes that are read of a body. */
const MAX_UNPACKED_BYTES = 64 * 1024
/**
 * Maximum bytes that are read of a short packed body: 35 bytes can unpack to 64 KiB that take more than a millisecond to read, as often
 * as a client can send them. With this, 35 bytes take at most half of one, and 400 one. Hundreds of similar events in JSON are packed to
 * a 20th by gzip and to a 50th by brotli or zstd, and are read; a list of thousands of zeros is not.
 */
const MAX_UNPACKED_OF_SHORT = 4 * 1024
const MAX_RATIO = 64
/** Codings within one another that are taken off: no framework takes off more. */
const MAX_CODINGS = 2

// A text that was cut off is read as far as it goes, and a bomb no further than any other body.
const finishFlush = constants.Z_SYNC_FLUSH
const zstd = {
  finishFlush: constants.ZSTD_e_flush,
  // RFC 9659 section 3: 8 MiB. By default 24 bytes may ask for a window of 128 MiB, to allocate which takes half a millisecond.
  params: { [constants.ZSTD_d_windowLogMax]: 23 },
}

const unpackers: Readonly<Record<string, (packed: Buffer, maxOutputLength: number) => Buffer>> = {
  gzip: (packed, maxOutputLength) => gunzipSync(packed, { maxOutputLength, finishFlush }),
  'x-gzip': (packed, maxOutputLength) => gunzipSync(packed, { maxOutputLength, finishFlush }),
  // RFC 9110 section 8.4.1.2: some senders leave the zlib format out, and some readers allow for it.
  deflate: (packed, maxOutputLength) =>
    ((packed[0] ?? 0) % 16 === 8 ? inflateSync : inflateRawSync)(packed, { maxOutputLength, finishFlush }),
  br: (packed, maxOutputLength) =>
    brotliDecompressSync(packed, { maxOutputLength, finishFlush: constants.BROTLI_OPERATION_FLUSH }),
  zstd: (packed, maxOutputLength) => zstdDecompressSync(packed, { maxOutputLength, ...zstd }),
}

/**
 * Takes the `Content-Encoding` off a body, as frameworks such as Express do by themselves.
 *
 * @param codings in the order in which they were applied
 * @returns undefined if it is packed otherwise, or unpacks to more than is read
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
 * Names of codings that some server, proxy or framework decodes, or a backend with a library could, at any place: a backend may look for
 * `gzip` anywhere in the field. Any other name, such as `utf-8`, `none` or `aws-chunked`, is a mistake that backends ignore or refuse.
 */
const packing =
  /zip|gz|flate|zlib|br|zst|compress|lz|xz|bz|7z|pack|snappy|sdch|dcb|dcz|exi|aes|crypt|base64|quoted-printable/

/** Whether a backend may read something else than the bytes that were sent. */
export function mayBePacked(codings: readonly string[]): boolean {
  return codings.some((coding) => packing.test(coding))
}
