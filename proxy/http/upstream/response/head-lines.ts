const lineFeed = 0x0a
const carriageReturn = 0x0d

const emptyLine = Buffer.from('\r\n\r\n')

/**
 * The offset of the line end before the empty line; -1 if it has not arrived yet.
 *
 * @param searched bytes at the beginning that are known not to contain it
 */
export function headEndIn(bytes: Buffer, searched: number): number {
  return bytes.indexOf(emptyLine, Math.max(0, searched - 3))
}

/** Removes an empty line at the beginning of the bytes. */
export function withoutEmptyLine(bytes: Buffer): Buffer {
  return bytes[0] === carriageReturn && bytes[1] === lineFeed ? bytes.subarray(2) : bytes
}

/** The error for a backend that speaks HTTP/2 without TLS, as gRPC servers do. */
export const speaksHttp2 = 'the backend answered with HTTP/2: its URL must begin with h2c:// (UPSTREAM_URL)'

/**
 * Why no response head can begin with these bytes; undefined if one can.
 *
 * @param checked bytes at the beginning that were checked before
 */
export function problemOfUnfinishedHead(bytes: Buffer, checked: number): string | undefined {
  if (checked < FRAME_HEAD_BYTES && beginsAsHttp2(bytes)) return speaksHttp2
  // Without this check, the gateway would wait until the timeout for a backend that ends lines with LF alone.
  for (let at = bytes.indexOf(lineFeed, checked); at !== -1; at = bytes.indexOf(lineFeed, at + 1))
    if (bytes[at - 1] !== carriageReturn) return 'header line ends with a bare LF'
  return undefined
}

const FRAME_HEAD_BYTES = 9

/** An HTTP/2 frame on stream 0, SETTINGS or GOAWAY: the first that a server sends (RFC 9113 section 3.4). */
function beginsAsHttp2(bytes: Buffer): boolean {
  return (
    bytes.length >= FRAME_HEAD_BYTES &&
    bytes[0] === 0 &&
    (bytes[3] === 4 || bytes[3] === 7) &&
    bytes.readUInt32BE(5) === 0
  )
}
