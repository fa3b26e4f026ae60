import { z } from 'zod'
import type { PartitionPart } from '../policy.ts'

const needs = 'ip or header:NAME, such as header:x-api-key'

// Fields of one connection (RFC 9110 section 7.6.1, RFC 9112): removed before a request is looked at. `__proto__` is one
// that Node's parsed fields cannot hold.
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

/** A part of what makes a client: `ip`, or `header:NAME`, whose name may be in any case. */
export const partitionPart = z
  .string(`needs ${needs}`)
  .meta({ pattern: '^(ip|header:.+)$' })
  .transform((text, context): PartitionPart => {
    if (text === 'ip') return { kind: 'ip' }
    const [, name] = /^header:([!#$%&'*+.^_`|~0-9A-Za-z-]+)$/.exec(text) ?? []
    if (name === undefined || unseenFields.has(name.toLowerCase())) {
      const message =
        name === undefined ? `needs ${needs}` : 'needs a field that rules see, not one of the connection'
      context.issues.push({ code: 'custom', message, input: text })
      return z.NEVER
    }
    return { kind: 'header', name: name.toLowerCase() }
  })

/** Whether a list names a part a second time, in whatever case. */
export function repeatsPart(parts: readonly PartitionPart[]): boolean {
  return new Set(parts.map((part) => (part.kind === 'ip' ? 'ip' : `header:${part.name}`))).size < parts.length
}
