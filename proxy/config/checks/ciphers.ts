import { createSecureContext } from 'node:tls'
import { problemAt, showValue, type Problem } from '../../../shared/settings/problems.ts'
import type { ReadSettings } from '../../../shared/settings/settings.ts'
import { isOfTls13, splitCiphers } from '../../http/connection/tls/ciphers.ts'
import type { gatewayTable } from '../settings-table.ts'

/**
 * Tries each entry of `tlsCiphers` by itself: OpenSSL ignores unknown names as long as it knows one of them, so that a
 * typing mistake would silently leave out a suite.
 */
export function checkCiphers({ values, placeOf }: ReadSettings<typeof gatewayTable>): Problem[] {
  const { tlsCiphers, tlsMinVersion } = values
  if (tlsCiphers === undefined) return []
  const place = placeOf('tlsCiphers')
  const entries = splitCiphers(tlsCiphers)
  const unknown = entries.filter((entry) => !isKnown(entry))
  if (unknown.length > 0) {
    const text = `got ${unknown.map(showValue).join(', ')}, needs names that OpenSSL knows (openssl ciphers), separated by colons`
    return [problemAt(place, text)]
  }
  if (tlsMinVersion === 'TLSv1.2' && entries.every(isOfTls13)) {
    const text = `got only TLS 1.3 suites, needs at least one TLS 1.2 suite, or ${placeOf('tlsMinVersion').label} set to TLSv1.3`
    return [problemAt(place, text)]
  }
  return []
}

/** A suite, or a group such as `ECDHE+AESGCM`, maybe removed (`!`, `-`) or moved to the end (`+`); `@…` is a command. */
function isKnown(entry: string): boolean {
  if (/^@(STRENGTH|SECLEVEL=[0-5])$/.test(entry)) return true
  const ciphers = entry.replace(/^[!+-]/, '')
  if (ciphers === '') return false
  try {
    createSecureContext({ ciphers })
    return true
  } catch {
    return false
  }
}
