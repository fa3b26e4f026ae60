import {
  brotliDecompressSync,
  constants,
  gunzipSync,
  inflateRawSync,
  inflateSync,
  type Inflate,
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

type Unpacker = (packed: Buffer, maxOutputLength: number) => Buffer

const gunzip: Unpacker = (packed, maxOutputLength) =>
  orUnchecked(gunzipUnchecked, packed, maxOutputLength, () =>
    gunzipSync(packed, { maxOutputLength, finishFlush }),
  )

const inflate: Unpacker = (packed, maxOutputLength) => {
  // Some senders omit the zlib format, and some readers accept that (RFC 9110 section 8.4.1.2).
  if ((packed[0] ?? 0) % 16 !== 8) return inflateRawSync(packed, { maxOutputLength, finishFlush })
  return orUnchecked(inflateUnchecked, packed, maxOutputLength, () =>
    inflateSync(packed, { maxOutputLength, finishFlush }),
  )
}

/** Decodes with `unpack`, and with `unchecked` if the data is wrong, because it may be only the checksum. */
function orUnchecked(
  unchecked: Unpacker,
  packed: Buffer,
  maxOutputLength: number,
  unpack: () => Buffer,
): Buffer {
  try {
    return unpack()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'Z_DATA_ERROR') throw error
    return unchecked(packed, maxOutputLength)
  }
}

const unpackers: Readonly<Record<string, Unpacker>> = {
  gzip: gunzip,
  'x-gzip': gunzip,
  deflate: inflate,
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

/** Maximum members of a gzip file to read. Senders write one. */
const MAX_MEMBERS = 16
/** The length of a checksum and of the length of the data, after each member of a gzip file. */
const TRAILER_LENGTH = 8

/**
 * Decodes gzip (RFC 1952) without a look at checksums: Go and Java return a JSON value before they have read the checksum after it.
 *
 * @param maxOutputLength in bytes
 * @throws if the data is not valid, or too long when decoded
 */
function gunzipUnchecked(packed: Buffer, maxOutputLength: number): Buffer {
  const members: Buffer[] = []
  let left = maxOutputLength
  for (let start = 0, end = headerEnd(packed, 0); end !== undefined; end = headerEnd(packed, start)) {
    if (members.length === MAX_MEMBERS) throw new RangeError('too many members')
    const { buffer, engine } = inflateRaw(packed.subarray(end), Math.max(1, left))
    left -= buffer.length
    if (left < 0) throw new RangeError('too long')
    members.push(buffer)
    start = end + engine.bytesWritten + TRAILER_LENGTH
  }
  if (members.length === 0) throw new TypeError('not gzip')
  return Buffer.concat(members)
}

/** Decodes the zlib format (RFC 1950) in the same way. */
function inflateUnchecked(packed: Buffer, maxOutputLength: number): Buffer {
  return inflateRaw(packed.subarray(2), maxOutputLength).buffer
}

type Inflated = { readonly buffer: Buffer; readonly engine: Pick<Inflate, 'bytesWritten'> }

function inflateRaw(packed: Buffer, maxOutputLength: number): Inflated {
  const options = { maxOutputLength, finishFlush, info: true }
  return inflateRawSync(packed, options) as unknown as Inflated
}

const hasHeaderChecksum = 2
const hasExtra = 4
const hasName = 8
const hasComment = 16

/** The index after the header of a gzip member; undefined if none begins here. */
function headerEnd(bytes: Buffer, start: number): number | undefined {
  if (bytes[start] !== 0x1f || bytes[start + 1] !== 0x8b || bytes[start + 2] !== 8) return undefined
  const flags = bytes[start + 3] ?? 0
  let at = start + 10
  if (flags & hasExtra) at += 2 + (bytes[at] ?? 0) + 256 * (bytes[at + 1] ?? 0)
  for (const field of [hasName, hasComment]) {
    if (!(flags & field)) continue
    const end = bytes.indexOf(0, at)
    if (end === -1) return undefined
    at = end + 1
  }
  if (flags & hasHeaderChecksum) at += 2
  return at < bytes.length ? at : undefined
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
