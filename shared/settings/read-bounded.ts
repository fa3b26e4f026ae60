import { closeSync, openSync, readSync } from 'node:fs'

/**
 * Reads a file that may be a pipe or /dev/stdin, and is then read once, at the start: in pieces, as those have no size that could be
 * checked first. A pipe is waited for until somebody has written to it.
 *
 * @throws the system's error, or one that says that the file is larger than `maxBytes`
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
