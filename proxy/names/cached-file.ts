import { readFile, stat } from 'node:fs/promises'
import { withoutMark } from '../../shared/settings/byte-order-mark.ts'

/**
 * Creates a function that returns the parsed content of a system file. It reads the file again only when it has changed, because
 * `/etc/hosts` may have a hundred thousand lines.
 *
 * @param parse gets the empty text if the file is missing or cannot be read
 * @returns a function that resolves to the result of `parse` for the current file; to the same value until the file changes
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

/** The inode alone is not enough: container engines write `/etc/hosts` and `/etc/resolv.conf` in place. */
async function versionOf(path: string): Promise<string> {
  try {
    const { ino, size, mtimeNs } = await stat(path, { bigint: true })
    return `${ino} ${size} ${mtimeNs}`
  } catch {
    return 'none'
  }
}
