import { constants, readFileSync, statSync, type Stats } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'

/** Maximum bytes, more than any certificates, keys or responses need. */
const MAX_BYTES = 4 * 1024 * 1024

/** Should the file become a pipe meanwhile, opening it does not wait for a writer. Windows has no such flag. */
const flag = constants.O_RDONLY | constants.O_NONBLOCK

/**
 * Reads a file that may be read again while the gateway runs. Follows links. A pipe or a terminal would make the process wait for whoever
 * writes to it, gives its content to one reader only, and a device may have no end: those are refused. Files of `/proc` are regular ones.
 *
 * @throws Error of the file system, or one that says that it is not a regular file, or is larger than `maxBytes`
 */
export function readRegularFileSync(path: string, maxBytes = MAX_BYTES): Buffer {
  check(statSync(path), maxBytes)
  return readFileSync(path, { flag })
}

/** Does what `readRegularFileSync` does, while requests are served. */
export async function readRegularFile(path: string, maxBytes = MAX_BYTES): Promise<Buffer> {
  check(await stat(path), maxBytes)
  return readFile(path, { flag })
}

function check(stats: Stats, maxBytes: number): void {
  if (!stats.isFile()) throw new Error('it is not a regular file')
  if (stats.size > maxBytes) throw new Error(`the file is larger than ${maxBytes / 1024} KiB`)
}
