import { text } from '../../../shared/settings/kinds.ts'
import type { Kind } from '../../../shared/settings/table.ts'
import { neverForwarded } from '../../http/fields/proxy-headers.ts'

/** These say something else, are of one hop, or Node keeps only the first of several lines of them. */
const otherHeaders = new Set([
  ...neverForwarded,
  'age',
  'authorization',
  'close',
  'connection',
  'cookie',
  'etag',
  'expect',
  'expires',
  'forwarded',
  'from',
  'host',
  'http2-settings',
  'keep-alive',
  'location',
  'max-forwards',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'referer',
  'retry-after',
  'server',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'via',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-request-id',
])
const otherPrefixes = /^(accept|access-control|content|if|sec)-/

const written = text(
  'the name of a header in which a proxy sends the address of its client, such as CF-Connecting-IP',
  (name) => /^[a-z][a-z0-9-]{1,63}$/i.test(name) && !isOther(name.toLowerCase()),
)

/**
 * The header that trusted proxies name their client in, read in lower case. Of `X-Forwarded-For` the chain is read, any
 * other holds one address. `Forwarded` is not read.
 */
export const clientAddressHeader: Kind<string> = {
  ...written,
  schema: written.schema.transform((name) => name.toLowerCase()),
}

function isOther(name: string): boolean {
  return otherHeaders.has(name) || otherPrefixes.test(name) || name === 'accept'
}
