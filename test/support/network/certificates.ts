import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Certificates and keys. One authority, whose key has been thrown away, has signed all but `named`. `first` and `second` are for
 * `localhost` and 127.0.0.1, and their subject is their name; `elsewhere` is for another host. `named` is self-signed, and is only for
 * `localhost`, not for its address.
 */
export function certificateFiles(name: 'first' | 'second' | 'elsewhere' | 'named'): {
  cert: string
  key: string
} {
  return { cert: fileOf(`${name}.pem`), key: fileOf(`${name}-key.pem`) }
}

export const authorityFile = fileOf('authority.pem')

export function readPair(name: 'first' | 'second' | 'elsewhere'): { cert: Buffer; key: Buffer } {
  const { cert, key } = certificateFiles(name)
  return { cert: readFileSync(cert), key: readFileSync(key) }
}

/** The settings that make a gateway serve HTTPS with such a certificate. */
export function tlsSettings(name: 'first' | 'second' = 'first'): Record<string, string> {
  const { cert, key } = certificateFiles(name)
  return { TLS_CERT_FILE: cert, TLS_KEY_FILE: key }
}

function fileOf(name: string): string {
  return join(import.meta.dirname, 'certificates', name)
}
