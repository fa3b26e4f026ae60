import { z } from 'zod'
import { partName, type PartitionPart } from '../policy.ts'

const needs = 'ip, host, global or header:NAME, such as header:x-api-key'

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

/** A part of a rule's key: `ip`, `host`, `global`, or `header:NAME`, whose name may be in any case. */
export const partitionPart = z
  .string(`needs ${needs}`)
  .meta({ pattern: '^(ip|host|global|header:.+)$' })
  .transform((text, context): PartitionPart => {
    if (text === 'ip' || text === 'host' || text === 'global') return { kind: text }
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
    return 'needs a header of the client, not one that the gateway sets; for the host use host, for the address ip, with trustedProxies'
  return undefined
}

/** Whether a list has the same part twice, in any letter case. */
export function repeatsPart(parts: readonly PartitionPart[]): boolean {
  return new Set(parts.map(partName)).size < parts.length
}

/** Whether a list has `global` and something else, which could not mean anything. */
export function mixesGlobal(parts: readonly PartitionPart[]): boolean {
  return parts.length > 1 && parts.some(({ kind }) => kind === 'global')
}
