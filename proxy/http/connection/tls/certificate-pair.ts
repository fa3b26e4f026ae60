import { createPrivateKey, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'

/** A certificate, or chain, and its private key, both PEM. */
export type CertificatePair = { readonly cert: Buffer; readonly key: Buffer }

/**
 * Tries a pair as it is going to be used. OpenSSL by itself accepts a key of another type than the certificate's, as if the
 * certificate for it were to follow, and then every handshake fails.
 *
 * @returns the certificate
 * @throws if one of them cannot be read, or the key does not match the certificate
 */
export function tryPair({ cert, key }: CertificatePair): X509Certificate {
  createSecureContext({ cert, key })
  const certificate = new X509Certificate(cert)
  if (!certificate.checkPrivateKey(createPrivateKey(key)))
    throw new Error('the private key does not match the certificate')
  return certificate
}
