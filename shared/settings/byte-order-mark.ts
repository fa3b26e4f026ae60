/** Removes the byte order mark with which editors and shells on Windows begin a UTF-8 file. */
export function withoutMark(text: string): string {
  return text.startsWith('\u{feff}') ? text.slice(1) : text
}

const mark = Buffer.from('\u{feff}')

/** Does what `withoutMark` does, for bytes. */
export function withoutMarkBytes(bytes: Buffer): Buffer {
  return bytes.subarray(0, mark.length).equals(mark) ? bytes.subarray(mark.length) : bytes
}
