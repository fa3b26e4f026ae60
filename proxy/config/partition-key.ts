import { z } from 'zod'
import type { PartitionPart } from '../policy.ts'

const needs = 'ip or header:NAME, such as header:x-api-key'

// Hop-by-hop headers (RFC 9110 section 7.6.1, RFC 9112): removed before rules see a request. `__proto__` is a name that
// Node's parsed headers cannot hold.
const unseenFields = new Set([
  'connection',
  'expect',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  '__proto__',
])

// Headers that the gateway sets: the backend does not get what the client sent.
const decidedFields = new Set([
  'host',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-real-ip',
  'x-request-id',
])

/** A part of a rule's key: `ip`, or `header:NAME`, whose name may be in any case. */
export const partitionPart = z
  .string(`needs ${needs}`)
  .meta({ pattern: '^(ip|header:.+)$' })
  .transform((text, context): PartitionPart => {
    if (text === 'ip') return { kind: 'ip' }
    const [, name] = /^header:([!#$%&'*+.^_`|~0-9A-Za-z-]+)$/.exec(text) ?? []
    const message = name === undefined ? `needs ${needs}` : mistakeOf(name.toLowerCase())
    if (name === undefined || message !== undefined) {
      context.issues.push({ code: 'custom', message: message ?? '', input: text })
      return z.NEVER
    }
    return { kind: 'header', name: name.toLowerCase() }
  })

function mistakeOf(name: string): string | undefined {
  if (unseenFields.has(name)) return 'needs a header that is forwarded, not a hop-by-hop header'
  if (decidedFields.has(name))
    return 'needs a header of the client, not one that the gateway sets; for the address use ip, with trustedProxies'
  return undefined
}

/** Whether a list has the same part twice, in any letter case. */
export function repeatsPart(parts: readonly PartitionPart[]): boolean {
  return new Set(parts.map((part) => (part.kind === 'ip' ? 'ip' : `header:${part.name}`))).size < parts.length
}
