/**
 * Mozilla's "intermediate" suites of TLS 1.2 that need no DH parameters: forward secrecy and AEAD only
 * (wiki.mozilla.org/Security/Server_Side_TLS).
 */
const modern12 = [
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
]
const modern13 = ['TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256']

/** The entries of an OpenSSL cipher list. */
export function splitCiphers(list: string): string[] {
  return list.split(/[:;, ]/)
}

/** Whether a suite belongs to TLS 1.3, whose suites have their own names. */
export function isOfTls13(entry: string): boolean {
  return entry.startsWith('TLS_')
}

/**
 * The cipher list to serve HTTPS with, in the form that Node takes: suites of both versions in one. Without one of TLS 1.3
 * Node would not speak that version, so a list that names none, as nginx's `ssl_ciphers`, leaves the usual ones.
 *
 * @param chosen as set by the operator
 */
export function cipherList(chosen: string | undefined): string {
  const entries = chosen === undefined ? modern12 : splitCiphers(chosen)
  return (entries.some(isOfTls13) ? entries : [...modern13, ...entries]).join(':')
}
