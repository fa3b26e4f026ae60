import { closeSync, openSync, readSync } from 'node:fs'

/**
 * Reads a file that may be a pipe or /dev/stdin, which is read only once, at the start. The size of a pipe cannot be checked first, so the
 * file is read in pieces. Blocks until somebody has written to the pipe.
 *
 * @throws the system's error, or an Error if the file is larger than `maxBytes`
 */
export function readBounded(path: string, maxBytes: number): Buffer {
  const buffer = Buffer.alloc(maxBytes + 1)
  const file = openSync(path, 'r')
  try {
    let length = 0
    for (;;) {
      const read = readSync(file, buffer, length, buffer.length - length, null)
      if (read === 0) return buffer.subarray(0, length)
      length += read
      if (length > maxBytes) throw new Error('the file is larger')
    }
  } finally {
    closeSync(file)
  }
}
