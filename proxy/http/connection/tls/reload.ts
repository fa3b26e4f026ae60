import { watch, type FSWatcher } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Log } from '../../../../shared/log.ts'
import { reasonOf } from '../../../../shared/settings/problems.ts'
import { readRegularFile } from '../../../../shared/settings/regular-file.ts'
import { tryPair, type CertificatePair } from './certificate-pair.ts'
import { ValidityWatch } from './validity-watch.ts'

export type CertificateWatch = {
  /** Reads the files again and uses them if they have changed and are valid. Never rejects. */
  reload(): Promise<void>
  close(): void
}

type CertificateWatchOptions = {
  readonly certFile: string
  readonly keyFile: string
  readonly inUse: CertificatePair
  /** Puts the new pair into use. */
  readonly use: (pair: CertificatePair) => void
  /** Whether to log that a certificate in use has expired. Default: true. */
  readonly warnsOfValidity?: boolean
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>
}

/** Files that change together are read once, when both have settled. */
const SETTLE_MS = 100
/**
 * A pair that does not match is checked again before the error is logged: one file may be written later than the other.
 */
const SECOND_CHECK_MS = 1_000
/** How often the files are checked on systems without change notifications, such as network file systems. */
const POLL_MS = 10_000

/**
 * Reloads a certificate and its key when they change on disk. The directories are watched rather than the files, which are usually
 * replaced, directly or through a symbolic link (certbot, Kubernetes). If the new pair cannot be read or does not match, an error is logged
 * and the current pair stays in use. A warning is logged if the certificate in use has expired.
 */
export function watchCertificate(options: CertificateWatchOptions): CertificateWatch {
  const { certFile, keyFile, use, warnsOfValidity = true, log } = options
  let { inUse } = options
  const validity = warnsOfValidity ? new ValidityWatch(inUse.cert, log) : undefined
  let timer: NodeJS.Timeout | undefined
  let reported = ''

  const checkIn = (delayMs: number, isSecondCheck = false): void => {
    clearTimeout(timer)
    timer = setTimeout(() => void check(isSecondCheck), delayMs).unref()
  }
  /** Returns whether the files differ from the pair in use. */
  const check = async (isSecondCheck: boolean): Promise<boolean> => {
    try {
      const pair = { cert: await readRegularFile(certFile), key: await readRegularFile(keyFile) }
      if (pair.cert.equals(inUse.cert) && pair.key.equals(inUse.key)) return false
      const { subject, validTo } = tryPair(pair)
      use(pair)
      inUse = pair
      reported = ''
      log.info({ subject, validTo }, 'TLS certificate reloaded')
      validity?.watch(pair.cert)
    } catch (error) {
      const reason = reasonOf(error)
      if (!isSecondCheck) checkIn(SECOND_CHECK_MS, true)
      else if (reason !== reported) {
        reported = reason
        log.error(
          { certFile, keyFile, reason },
          'TLS certificate reload failed; keeping the current certificate',
        )
      }
    }
    return true
  }

  const directories = new Set([certFile, keyFile].map((file) => dirname(resolve(file))))
  const watchers = [...directories].map((directory) => watchDirectory(directory, () => checkIn(SETTLE_MS)))
  const poll = setInterval(() => {
    validity?.check()
    void check(false)
  }, POLL_MS).unref()
  return {
    async reload() {
      reported = ''
      if (!(await check(true))) log.info({ certFile, keyFile }, 'TLS certificate unchanged')
    },
    close() {
      clearTimeout(timer)
      clearInterval(poll)
      for (const watcher of watchers) watcher?.close()
    },
  }
}

/** Returns undefined if the system cannot watch the directory. The files are polled anyway. */
function watchDirectory(directory: string, onChange: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(directory, { persistent: false }, onChange)
    watcher.on('error', () => watcher.close())
    return watcher
  } catch {
    return undefined
  }
}
