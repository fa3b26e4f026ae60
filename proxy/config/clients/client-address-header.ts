import { text } from '../../../shared/settings/kinds.ts'
import type { Kind } from '../../../shared/settings/table.ts'
import {
  answeredHere,
  forwardProxyHeaders,
  hopByHop,
  neverForwarded,
  writtenByGateway,
} from '../../http/fields/removed-headers.ts'

/** Headers that the gateway writes, but in which proxies name their client, too. */
const addressHeaders: ReadonlySet<string> = new Set(['x-forwarded-for', 'x-real-ip'])

/** Headers that cannot name a client, because they mean something else, are hop-by-hop, or Node keeps only the first of several lines. */
const otherHeaders = new Set([
  ...neverForwarded,
  ...hopByHop,
  ...forwardProxyHeaders,
  ...writtenByGateway.filter((name) => !addressHeaders.has(name)),
  answeredHere,
  'age',
  'authorization',
  'cookie',
  'etag',
  'expires',
  'from',
  'location',
  'max-forwards',
  'referer',
  'retry-after',
  'server',
  'user-agent',
  'via',
  'x-forwarded-port',
])
const otherPrefixes = /^(accept|access-control|content|if|sec)-/

const written = text(
  'the name of a header in which a proxy sends the address of its client, such as CF-Connecting-IP',
  (name) => /^[a-z][a-z0-9-]{1,63}$/i.test(name) && !isOther(name.toLowerCase()),
)

/**
 * The header in which trusted proxies name their client, converted to lower case. `X-Forwarded-For` is read as a chain; any other header
 * holds one address. `Forwarded` is not supported.
 */
export const clientAddressHeader: Kind<string> = {
  ...written,
  schema: written.schema.transform((name) => name.toLowerCase()),
}

function isOther(name: string): boolean {
  return otherHeaders.has(name) || otherPrefixes.test(name) || name === 'accept'
}
