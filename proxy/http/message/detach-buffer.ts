/**
 * Copies the text into memory of its own. V8 keeps the whole head in memory for a slice of it, so texts that outlive their request are
 * copied.
 *
 * @param text one character a byte
 */
export function ownCopy(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

/**
 * Copies the bytes into memory of their own. A short copy made by `Buffer.from` is a slice of a pool, and keeps the whole pool in memory.
 */
export function copyBytes(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  copy.set(bytes)
  return copy
}

/** Bytes are not copied if they make up at least this share of the buffer that they keep in memory. */
const MIN_SHARE = 1 / 4

/**
 * Returns the same bytes, copied to memory of their own if they are a small part of the buffer that they keep alive. Bytes read from a
 * backend share a buffer with many others, so pending bytes for a slow client are copied.
 *
 * @param piece must not be written to afterwards
 */
export function detachBuffer(piece: Buffer): Buffer {
  return piece.length >= piece.buffer.byteLength * MIN_SHARE ? piece : copyBytes(piece)
}
