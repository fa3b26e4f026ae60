import { statSync, type BigIntStats } from 'node:fs'
import { stat } from 'node:fs/promises'

/**
 * Milliseconds between two checks. A change is applied once two checks in a row find the same file, because a writer may not have finished.
 */
const CHECK_INTERVAL_MS = 500

/**
 * Notices when the content of a file changes: the file is written in place or replaced by a rename, or a symbolic link to it changes.
 * Checks the file twice a second, because change notifications do not work on all mounts; see docs/decisions/reload.md. A file that becomes
 * missing or empty does not count as a change.
 *
 * @param seen the result of `signatureOf` from before the file was read
 * @param changed called once for each change, and when a file that was missing appears
 * @param gone called each time the file has become missing or empty; `changed` is called when it reappears
 * @returns a function that stops watching
 */
export function watchFile(path: string, seen: string, changed: () => void, gone?: () => void): () => void {
  /** The state of the file that was last reported. */
  let known = seen
  let last = seen
  let isChecking = false

  async function check(): Promise<void> {
    const now = describe(await stat(path, { bigint: true }).catch(() => undefined))
    const isSettled = now === last
    last = now
    if (!isSettled || now === known || (now === absent && !gone)) return
    known = now
    if (now === absent) gone?.()
    else changed()
  }

  const timer = setInterval(() => {
    if (isChecking) return
    isChecking = true
    void check().finally(() => (isChecking = false))
  }, CHECK_INTERVAL_MS)
  timer.unref()
  return () => clearInterval(timer)
}

const absent = 'absent'

/** The message about a file that has become missing or empty. */
export const IS_GONE = 'the file is missing or empty'

/**
 * Returns a text that differs for every file that takes the place of this one, and for every change of its content. Follows links. Never
 * throws.
 */
export function signatureOf(path: string): string {
  try {
    return describe(statSync(path, { bigint: true }))
  } catch {
    return absent
  }
}

/** Returns the metadata of a file. No usual tool changes the content without changing some of it. */
function describe(found: BigIntStats | undefined): string {
  if (!found || found.size === 0n) return absent
  const { dev, ino, size, mtimeNs, ctimeNs } = found
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ')
}
