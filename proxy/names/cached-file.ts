import { readFile, stat } from 'node:fs/promises'
import { withoutMark } from '../../shared/settings/byte-order-mark.ts'

/**
 * Makes a function that reads and parses a file of the system, again only when it has changed: `/etc/hosts` may have a hundred thousand
 * lines.
 *
 * @param parse gets the empty text if the file is missing or cannot be read
 * @returns it resolves to the result of `parse` for the current file; the same value while the file is the same
 */
export function createCachedFile<T>(path: string, parse: (text: string) => T): () => Promise<T> {
  let version: string | undefined
  let parsed: T | undefined
  return async () => {
    const current = await versionOf(path)
    if (parsed === undefined || current !== version) {
      const text = withoutMark(await readFile(path, 'utf8').catch(() => ''))
      parsed = parse(text)
      version = current
    }
    return parsed
  }
}

/** Container engines write `/etc/hosts` and `/etc/resolv.conf` in place: the inode stays. */
async function versionOf(path: string): Promise<string> {
  try {
    const { ino, size, mtimeNs } = await stat(path, { bigint: true })
    return `${ino} ${size} ${mtimeNs}`
  } catch {
    return 'none'
  }
}
