import type { z } from 'zod'
import { hopByHop } from '../../http/fields/removed-headers.ts'
import { token } from '../../http/message/token.ts'

const MAX_NAME_LENGTH = 64

/** Headers that frame a response, that are hop-by-hop, or that the gateway itself sets in local replies. */
const ownHeaders = new Set([
  ...hopByHop,
  'cache-control',
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'ratelimit',
  'ratelimit-policy',
  'retry-after',
  'vary',
  'x-request-id',
])
const ownPrefixes = /^(access-control|x-ratelimit)-/

/** Finds names that cannot be added to a local reply. */
export function addReplyHeaderIssues(
  headers: Readonly<Record<string, string>>,
  context: z.core.$RefinementCtx,
): void {
  addHeaderIssues(headers, context, problemOf)
}

/**
 * Finds names of headers that cannot be set.
 *
 * @param problemOf returns the mistake in a name, which it gets in lower case; `isRepeated` if the name occurred before
 */
export function addHeaderIssues(
  headers: Readonly<Record<string, string>>,
  context: z.core.$RefinementCtx,
  problemOf: (name: string, isRepeated: boolean) => string | undefined,
): void {
  const seen = new Set<string>()
  for (const written of Object.keys(headers)) {
    const name = written.toLowerCase()
    const message = problemOf(name, seen.has(name))
    if (message !== undefined) context.addIssue({ code: 'custom', path: [written], message })
    seen.add(name)
  }
}

function problemOf(name: string, isRepeated: boolean): string | undefined {
  if (name.length > MAX_NAME_LENGTH || !token.test(name))
    return 'the name of a header needs 1 to 64 letters, digits and dashes'
  if (name === 'content-type') return 'Content-Type is set by contentType'
  if (ownHeaders.has(name) || ownPrefixes.test(name))
    return `${name} is set by the gateway, and cannot be here`
  return isRepeated ? `${name} appears twice` : undefined
}
