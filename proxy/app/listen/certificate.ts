import type { Log } from '../../../shared/log.ts'
import { reasonOf } from '../../../shared/settings/problems.ts'
import { readRegularFile, readRegularFileSync } from '../../../shared/settings/regular-file.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import { tryPair, type CertificatePair } from '../../http/connection/tls/certificate-pair.ts'
import { watchCertificate, type CertificateWatch } from '../../http/connection/tls/reload.ts'
import type { AskForKept } from '../workers/kept-files.ts'

type CertificateFiles = Pick<GatewaySettings, 'tlsCertFile' | 'tlsKeyFile'>

/**
 * Reads the certificate and its key. Resolves with undefined without HTTPS; rejects with the reason if the files cannot be used.
 *
 * @param options.askForKept gets the pair of the primary process, for a worker that cannot use the files
 */
export async function readCertificate(
  { tlsCertFile: certFile, tlsKeyFile: keyFile }: CertificateFiles,
  { askForKept, log }: { readonly askForKept: AskForKept | undefined; readonly log: Pick<Log, 'error'> },
): Promise<CertificatePair | undefined> {
  if (certFile === undefined || keyFile === undefined) return undefined
  try {
    const pair = { cert: await readRegularFile(certFile), key: await readRegularFile(keyFile) }
    tryPair(pair)
    return pair
  } catch (error) {
    const kept = await askForKept?.('tls', certFile)
    const [cert, key] = kept?.columns ?? []
    if (!cert || !key) throw error
    const reason = reasonOf(error)
    log.error(
      { certFile, keyFile, reason },
      'cannot use the changed TLS certificate; keeping the current one',
    )
    return { cert, key }
  }
}

/** The last valid certificate and key, in the primary process. */
export type KeptCertificate = CertificateWatch & {
  /** Returns the pair of this certificate file, for workers that cannot use the files. */
  readKept(certFile: string): CertificatePair | undefined
}

/**
 * Reads the certificate and the key, and again when they change; undefined without HTTPS.
 *
 * @throws the system's error if a file cannot be read
 */
export function keepCertificate(
  { tlsCertFile: certFile, tlsKeyFile: keyFile }: CertificateFiles,
  log: Pick<Log, 'info' | 'warn' | 'error'>,
): KeptCertificate | undefined {
  if (certFile === undefined || keyFile === undefined) return undefined
  let pair = { cert: readRegularFileSync(certFile), key: readRegularFileSync(keyFile) }
  const use = (next: CertificatePair): void => void (pair = next)
  const watch = watchCertificate({ certFile, keyFile, inUse: pair, use, warnsOfValidity: false, log })
  return { ...watch, readKept: (location) => (location === certFile ? pair : undefined) }
}
