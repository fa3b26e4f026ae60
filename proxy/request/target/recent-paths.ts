import { ownCopy } from '../../http/message/detach-buffer.ts'
import { Remembered } from '../../http/message/remembered.ts'
import { readMatchPaths, type MatchPaths, type PathUse } from './match-path.ts'

/** Characters of all paths and readings. */
const MAX_REMEMBERED = 1 << 21
const MAX_PATH_LENGTH = 16 * 1024

/**
 * Over HTTP/2 a client sends a path once, and then names it by its index in the table of HPACK: with 15 bytes it would have a path of 4 KB
 * read again, for 4 ms. A proxy in front takes such requests, too, and sends the whole path.
 */
const recent = new Remembered<MatchPaths | string>(MAX_REMEMBERED, MAX_PATH_LENGTH, [], weigh)

function weigh(path: string, read: MatchPaths | string): number {
  if (typeof read === 'string') return path.length
  return read.otherMatchPaths.reduce((sum, reading) => sum + reading.length, 2 * path.length)
}

/**
 * The same as `readMatchPaths` for the path of a request, which other requests may have, too.
 *
 * @param path visible ASCII
 */
export function readRequestPath(path: string, use: PathUse): MatchPaths | string {
  // There is no blank in a path.
  const asked = `${use.hasFormat ? '.' : ''}${use.unresolved ?? ''} ${path}`
  const known = recent.find(asked)
  if (known !== undefined) return known
  const read = readMatchPaths(ownCopy(path), use)
  recent.add(ownCopy(asked), read)
  return read
}
