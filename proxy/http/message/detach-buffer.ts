/**
 * The same text in memory of its own. A part of a head keeps all of it in memory, so texts that outlive their request are copied.
 *
 * @param text of one character a byte
 */
export function ownCopy(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

/**
 * The same bytes in memory of their own: a short copy by `Buffer.from` lies in memory that it shares with others, and keeps all
 * of that.
 */
export function copyBytes(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  copy.set(bytes)
  return copy
}

/** Bytes keep all the memory that they are a part of, of which they may be as small a part as this. */
const MIN_SHARE = 1 / 4

/**
 * The same bytes, copied to memory of their own if they are a small part of the buffer that they keep alive. Bytes read from a
 * backend share a buffer with many others, so pending bytes for a slow client are copied.
 *
 * @param piece that is not written to any more
 */
export function detachBuffer(piece: Buffer): Buffer {
  return piece.length >= piece.buffer.byteLength * MIN_SHARE ? piece : copyBytes(piece)
}
