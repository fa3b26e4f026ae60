import { z } from 'zod'
import {
  answeredHere,
  forwardProxyHeaders,
  hopByHop,
  writtenByGateway,
} from '../../http/fields/removed-headers.ts'
import { token } from '../../http/message/token.ts'
import { alwaysThere } from '../../limits/keys/partition-key.ts'
import {
  partName,
  plainParts,
  singleParts,
  type PartitionPart,
  type SinglePart,
} from '../../policy/partition.ts'
import { meansNetwork, readNetworkKey } from './network-key.ts'

const needs = `${plainParts.join(', ')}, ip/24/48, header:NAME, cookie:NAME, query:NAME, path:NAME, body:NAME or jwt:CLAIM, such as header:x-api-key`

// Headers that the backend does not get. Node's parsed headers cannot hold the name `__proto__`.
const unseenFields = new Set([...hopByHop, ...forwardProxyHeaders, answeredHere, '__proto__'])

// Headers that the gateway sets: the backend does not get the client's value.
const decidedFields = new Set([...writtenByGateway, 'x-forwarded-port'])

const needsList = 'needs one part, or a list of parts in brackets, such as [ip, header:x-api-key]'

const needsFirst = 'needs two or more parts in first, such as { first: [header:x-api-key, ip] }'

const anyName = /^(header|cookie|query|path|body|jwt):(.+?)( as integer)?$/s

/** The syntax of the names of parts, by kind. */
export const partNames: Readonly<Record<string, RegExp>> = {
  header: token,
  cookie: token,
  query: /^[!$'()*,.:@_~0-9A-Za-z-]+$/,
  path: /^[A-Za-z_][\w-]*$/,
  // Each name needs a letter or a digit, because names are compared by these alone.
  body: /^[\w$@-]*[\p{L}\p{N}][\p{L}\p{N}_$@-]*(?:\.[\w$@-]*[\p{L}\p{N}][\p{L}\p{N}_$@-]*){0,7}$/u,
  jwt: /^[\x21-\x7e]{1,128}$/,
}

function isPlain(text: string): text is (typeof plainParts)[number] {
  return plainParts.some((kind) => kind === text)
}

/**
 * A part of a rule's key: `ip`, `host`, `global`, or a kind and a name, such as `header:x-api-key`. The name of a header may be in any
 * case. ` as integer` after the name says that the backend reads the value as a number. A `path` part does not have its patterns yet
 * (`withPatterns`).
 */
const singlePart = z
  .string(`needs ${needs}`)
  .meta({
    pattern: `^(${plainParts.join('|')}|ip/[1-9][0-9]{0,2}/[1-9][0-9]{0,2}|(${Object.keys(partNames).join('|')}):.+)$`,
  })
  .transform((text, context): SinglePart => {
    if (isPlain(text)) return { kind: text }
    const network = meansNetwork(text) ? readNetworkKey(text) : undefined
    if (typeof network === 'object') return { kind: 'network', ...network }
    const [, kind = '', name = '', suffix] = anyName.exec(text) ?? []
    const isNumber = suffix === undefined ? {} : ({ isNumber: true } as const)
    const isName = partNames[kind]?.test(name) ?? false
    const message =
      network ??
      (isName && !(kind === 'jwt' && suffix !== undefined)
        ? mistakeOf(kind, name.toLowerCase())
        : text.includes(',')
          ? needsList
          : `needs ${needs}`)
    if (message === undefined) {
      if (kind === 'jwt') return { kind, name }
      if (kind === 'cookie' || kind === 'query') return { kind, name, ...isNumber }
      if (kind === 'body') return { kind, name, path: name.split('.'), ...isNumber }
      if (kind === 'path') return { kind, name, patterns: [], ...isNumber }
      return { kind: 'header', name: name.toLowerCase(), ...isNumber }
    }
    context.issues.push({ code: 'custom', message, input: text })
    return z.NEVER
  })

const firstOfParts = z
  .strictObject({ first: z.array(singlePart, needsFirst).min(2, needsFirst) }, needsFirst)
  .transform(({ first }, context): PartitionPart => {
    // An entry after a part that every request has would never be used.
    const early = first.slice(0, -1).find(({ kind }) => alwaysThere.has(kind))
    if (!early) return { kind: 'first', of: first }
    const message = `needs ${partName(early)} last in first, as every request has it`
    context.issues.push({ code: 'custom', message, input: first })
    return z.NEVER
  })

/**
 * A rule's key: a part; `{ first: [...] }`, which uses each of its keys that the client sends, or else its last part; or a list of such
 * entries.
 */
export const partitionParts = z.union([
  singlePart.transform((part): PartitionPart[] => [part]),
  firstOfParts.transform((part): PartitionPart[] => [part]),
  z.array(z.union([singlePart, firstOfParts])).min(1, 'needs at least one entry'),
])

function mistakeOf(kind: string, name: string): string | undefined {
  return kind === 'header' ? mistakeInHeader(name) : undefined
}

/** @param name name of a header that a rule reads, in lower case */
export function mistakeInHeader(name: string): string | undefined {
  if (unseenFields.has(name)) return 'needs a header that is forwarded, not a hop-by-hop header'
  if (decidedFields.has(name))
    return 'needs a header of the client, not one that the gateway sets; for the host use host, for the address ip, with trustedProxies'
  return undefined
}

/** Whether a list has the same part twice, in any letter case. */
export function repeatsPart(parts: readonly PartitionPart[]): boolean {
  const all = singleParts(parts)
  return new Set(all.map((part) => partName(part).toLowerCase())).size < all.length
}

/** Whether a list combines `global` with other parts, which has no meaning. */
export function mixesGlobal(parts: readonly PartitionPart[]): boolean {
  return parts.length > 1 && parts.some(({ kind }) => kind === 'global')
}
