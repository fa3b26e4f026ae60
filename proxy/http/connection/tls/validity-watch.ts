import { X509Certificate } from 'node:crypto'
import type { Log } from '../../../../shared/log.ts'

/**
 * Logs once that the certificate in use has expired or is not valid yet. Clients refuse it then, and nothing else in the log would say so.
 */
export class ValidityWatch {
  readonly #log: Pick<Log, 'warn'>
  #certificate: X509Certificate
  #hasWarned = false

  /** @param cert PEM, whose first certificate is the server's */
  constructor(cert: Buffer, log: Pick<Log, 'warn'>) {
    this.#log = log
    this.#certificate = new X509Certificate(cert)
    this.check()
  }

  /** Watches another certificate from now on. */
  watch(cert: Buffer): void {
    this.#certificate = new X509Certificate(cert)
    this.#hasWarned = false
    this.check()
  }

  /** Warns once if the certificate has expired or is not valid yet; called periodically. */
  check(): void {
    if (this.#hasWarned) return
    const { subject, validFrom, validFromDate, validTo, validToDate } = this.#certificate
    const now = Date.now()
    if (now >= validFromDate.getTime() && now <= validToDate.getTime()) return
    this.#hasWarned = true
    if (now < validFromDate.getTime())
      this.#log.warn({ subject, validFrom }, 'TLS certificate is not valid yet: clients refuse it')
    else this.#log.warn({ subject, validTo }, 'TLS certificate has expired: clients refuse it')
  }
}
