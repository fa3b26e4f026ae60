import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { authorityFile } from '../../support/network/certificates.ts'

/** One context for all clients, as otherwise each client would read the authority's certificate again. */
export const tlsOptions = {
  secureContext: createSecureContext({ ca: readFileSync(authorityFile) }),
  servername: 'localhost',
}
