import { z } from 'zod'
import { partName, type PartitionPart } from '../policy.ts'

const needs = 'ip, host, global, header:NAME, cookie:NAME, query:NAME or path:NAME, such as header:x-api-key'

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

const anyName = /^(header|cookie|query|path):(.+)$/s
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

const names: Readonly<Record<string, RegExp>> = {
  header: token,
  cookie: token,
  query: /^[!$'()*,.:@_~0-9A-Za-z-]+$/,
  path: /^[A-Za-z_][\w-]*$/,
}

/**
 * A part of a rule's key: `ip`, `host`, `global`, or a kind and a name, such as `header:x-api-key`. The name of a header may
 * be in any case. A `path` part does not know its patterns yet (`withPatterns`).
 */
export const partitionPart = z
  .string(`needs ${needs}`)
  .meta({ pattern: '^(ip|host|global|(header|cookie|query|path):.+)$' })
  .transform((text, context): PartitionPart => {
    if (text === 'ip' || text === 'host' || text === 'global') return { kind: text }
    const [, kind = '', name = ''] = anyName.exec(text) ?? []
    const isName = names[kind]?.test(name) ?? false
    const message = isName ? mistakeOf(kind, name.toLowerCase()) : `needs ${needs}`
    if (message === undefined) {
      if (kind === 'cookie' || kind === 'query') return { kind, name }
      if (kind === 'path') return { kind, name, patterns: [] }
      return { kind: 'header', name: name.toLowerCase() }
    }
    context.issues.push({ code: 'custom', message, input: text })
    return z.NEVER
  })

function mistakeOf(kind: string, name: string): string | undefined {
  if (kind !== 'header') return undefined
  if (unseenFields.has(name)) return 'needs a header that is forwarded, not a hop-by-hop header'
  if (decidedFields.has(name))
    return 'needs a header of the client, not one that the gateway sets; for the host use host, for the address ip, with trustedProxies'
  return undefined
}

/** Whether a list has the same part twice, in any letter case. */
export function repeatsPart(parts: readonly PartitionPart[]): boolean {
  return new Set(parts.map((part) => partName(part).toLowerCase())).size < parts.length
}

/** Whether a list has `global` and something else, which could not mean anything. */
export function mixesGlobal(parts: readonly PartitionPart[]): boolean {
  return parts.length > 1 && parts.some(({ kind }) => kind === 'global')
}
