const lineFeed = 0x0a
const carriageReturn = 0x0d

const emptyLine = Buffer.from('\r\n\r\n')

/**
 * The offset of the line end before the empty line; -1 if it has not arrived yet.
 *
 * @param searched bytes at the beginning that are known not to have it
 * @param bareLf each of the two line ends may be without its CR
 */
export function headEndIn(bytes: Buffer, searched: number, bareLf: boolean): number {
  const from = Math.max(0, searched - 3)
  if (!bareLf) return bytes.indexOf(emptyLine, from)
  for (let at = bytes.indexOf(lineFeed, from); at !== -1; at = bytes.indexOf(lineFeed, at + 1)) {
    const next = bytes[at + 1]
    if (next === lineFeed || (next === carriageReturn && bytes[at + 2] === lineFeed))
      return bytes[at - 1] === carriageReturn ? at - 1 : at
  }
  return -1
}

/** The offset of the body, after the head that ends at `headEnd`. */
export function afterEmptyLine(bytes: Buffer, headEnd: number): number {
  return bytes.indexOf(lineFeed, bytes.indexOf(lineFeed, headEnd) + 1) + 1
}

/** Converts the line ends of a head to CRLF, as RFC 9112 has it. A CR that is not part of a line end stays, and is an error later. */
export function withCrlf(text: string): string {
  return text.replaceAll(/\r?\n/g, '\r\n')
}

/** Removes an empty line at the beginning of the bytes. */
export function withoutEmptyLine(bytes: Buffer, bareLf: boolean): Buffer {
  if (bytes[0] === carriageReturn && bytes[1] === lineFeed) return bytes.subarray(2)
  return bareLf && bytes[0] === lineFeed ? bytes.subarray(1) : bytes
}

/** The error for a backend that speaks HTTP/2 without TLS, as gRPC servers do. */
export const speaksHttp2 = 'the backend answered with HTTP/2: its URL must begin with h2c:// (UPSTREAM_URL)'

/**
 * Why more bytes cannot make these the head of a response; undefined if they can.
 *
 * @param checked bytes at the beginning that were checked before
 */
export function problemOfUnfinishedHead(bytes: Buffer, checked: number, bareLf: boolean): string | undefined {
  if (checked < FRAME_HEAD_BYTES && beginsAsHttp2(bytes)) return speaksHttp2
  if (bareLf) return undefined
  // Without this check, a backend that ends lines by LF alone would be waited for until the timeout.
  for (let at = bytes.indexOf(lineFeed, checked); at !== -1; at = bytes.indexOf(lineFeed, at + 1))
    if (bytes[at - 1] !== carriageReturn) return 'header line ends with a bare LF (UPSTREAM_BARE_LF)'
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
