import type { ClientRequest } from '../http/message/messages.ts'
import type { Peer } from './addresses/client-address.ts'

const requestIdSyntax = /^[A-Za-z0-9._:/=+-]{1,128}$/

/** The `X-Request-Id` of a trusted proxy, so that a request has the same id in all logs; undefined to make a new one. */
export function givenRequestId({ headers }: ClientRequest, { trusted }: Peer): string | undefined {
  const given = trusted ? headers['x-request-id'] : undefined
  return typeof given === 'string' && requestIdSyntax.test(given) ? given : undefined
}
