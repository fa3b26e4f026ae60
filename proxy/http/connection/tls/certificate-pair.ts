import { createPrivateKey, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'

/** A certificate, or chain, and its private key, both PEM. */
export type CertificatePair = { readonly cert: Buffer; readonly key: Buffer }

/**
 * Checks a pair as servers use it. OpenSSL alone accepts a key of another type than the certificate's, expecting the matching certificate
 * to follow, and then fails every handshake.
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
