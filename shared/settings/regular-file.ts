import { constants, readFileSync, statSync, type Stats } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'

/** Maximum size in bytes, more than certificates, keys or responses need. */
const MAX_BYTES = 4 * 1024 * 1024

/** If the file has become a pipe since the check, opening it does not wait for a writer. Windows has no such flag. */
const flag = constants.O_RDONLY | constants.O_NONBLOCK

/**
 * Reads a file that may be read again while the gateway runs. Follows links. Refuses pipes, terminals and other devices: a pipe or a
 * terminal would block the process until somebody writes to it, and gives its content to one reader only; a device may have no end. Files
 * in `/proc` are regular files.
 *
 * @throws the system's error, or an Error if the file is not a regular file or is larger than `maxBytes`
 */
export function readRegularFileSync(path: string, maxBytes = MAX_BYTES): Buffer {
  check(statSync(path), maxBytes)
  return readFileSync(path, { flag })
}

/** Does what `readRegularFileSync` does, without blocking requests. */
export async function readRegularFile(path: string, maxBytes = MAX_BYTES): Promise<Buffer> {
  check(await stat(path), maxBytes)
  return readFile(path, { flag })
}

function check(stats: Stats, maxBytes: number): void {
  if (!stats.isFile()) throw new Error('it is not a regular file')
  if (stats.size > maxBytes) throw new Error(`the file is larger than ${maxBytes / 1024} KiB`)
}
