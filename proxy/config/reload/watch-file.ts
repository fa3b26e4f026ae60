import { statSync, type BigIntStats } from 'node:fs'
import { stat } from 'node:fs/promises'

/**
 * Milliseconds between two checks. A change is applied when the file has been the same at two in a row: it may still be being written.
 */
const CHECK_INTERVAL_MS = 500

/**
 * Notices when a file has other content: it was written in place, replaced by a rename, or reached through a symbolic link that was
 * changed. It is checked twice a second, as change notifications do not come through all mounts; see docs/decisions/reload.md. A file
 * that becomes missing or empty is not a change.
 *
 * @param seen what `signatureOf` has said of it before it was read
 * @param changed called once for each change, and when a file that was missing appears
 * @param gone called each time the file has become missing or empty; `changed` is called when it is back
 * @returns how to stop
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

/** Tells a file from any that has taken its place and from itself when it was changed. Follows links. Never throws. */
export function signatureOf(path: string): string {
  try {
    return describe(statSync(path, { bigint: true }))
  } catch {
    return absent
  }
}

/** Returns the metadata of a file; no usual tool changes the content and keeps all of it. */
function describe(found: BigIntStats | undefined): string {
  if (!found || found.size === 0n) return absent
  const { dev, ino, size, mtimeNs, ctimeNs } = found
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ')
}
