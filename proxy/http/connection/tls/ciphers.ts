import { constants } from 'node:crypto'
import { DEFAULT_MIN_VERSION } from 'node:tls'

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

/**
 * Versions and ciphers that HTTPS is served with. Clients cannot renegotiate: each time would cost a handshake, and Node's own limit only
 * emits an error. `NODE_OPTIONS=--tls-min-v1.3` leaves out TLS 1.2.
 */
export const offeredTls = {
  minVersion: DEFAULT_MIN_VERSION === 'TLSv1.3' ? DEFAULT_MIN_VERSION : 'TLSv1.2',
  ciphers: [...modern13, ...modern12].join(':'),
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
} as const
