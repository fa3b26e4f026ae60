import { ownCopy } from '../../http/message/detach-buffer.ts'
import { Remembered } from '../../http/message/remembered.ts'
import { readMatchPaths, type MatchPaths, type PathUse } from './match-path.ts'

/** Maximum characters of all paths and readings in the cache. */
const MAX_REMEMBERED = 1 << 21
const MAX_PATH_LENGTH = 16 * 1024

/**
 * Caches readings, because an HTTP/2 client can send a path once and then refer to it by its index in the HPACK table: with 15 bytes it
 * could have a path of 4 KB read again, which takes 4 ms. A proxy in front accepts such requests, too, and forwards the whole path.
 */
const recent = new Remembered<MatchPaths | string>(MAX_REMEMBERED, MAX_PATH_LENGTH, [], weigh)

function weigh(path: string, read: MatchPaths | string): number {
  if (typeof read === 'string') return path.length
  return read.otherMatchPaths.reduce((sum, reading) => sum + reading.length, 2 * path.length)
}

/**
 * Does the same as `readMatchPaths`, with a cache for paths that several requests have.
 *
 * @param path must be visible ASCII
 */
export function readRequestPath(path: string, use: PathUse): MatchPaths | string {
  // A blank separates the parts, because paths have none.
  const asked = `${use.hasFormat ? '.' : ''}${use.isBatch ? ',' : ''}${use.unresolved ?? ''} ${path}`
  const known = recent.find(asked)
  if (known !== undefined) return known
  const read = readMatchPaths(ownCopy(path), use)
  recent.add(ownCopy(asked), read)
  return read
}
