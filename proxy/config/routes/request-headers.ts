import { z } from 'zod'
import { addHeaderIssues } from '../replies/reply-headers.ts'
import {
  answeredHere,
  hopByHop,
  neverForwarded,
  writtenByGateway,
} from '../../http/fields/removed-headers.ts'

const needsHeaders = 'needs a mapping of names of headers to values'
const needsValue = 'needs visible ASCII characters and spaces, at most 1024, in quotes if it is a number'
const headerName = /^[a-z0-9-]{1,64}$/

/** Headers that are hop-by-hop, describe the body, state conditions of the client, or are set by the gateway itself. */
const ownHeaders = new Set([
  ...neverForwarded,
  ...hopByHop,
  ...writtenByGateway,
  answeredHere,
  'cookie',
  'destination',
  'if',
  'max-forwards',
  'range',
  'traceparent',
  'tracestate',
  'via',
  'x-forwarded-prefix',
])
const ownPrefixes = /^(?:access-control|content|if|proxy|sec)-/

/** The field `requestHeaders`: name, value, name, value… with names in lower case. */
export const requestHeaders = z
  .record(
    z.string(),
    z.string(needsValue).regex(/^(?! )[\x20-\x7e]{1,1024}(?<! )$/, needsValue),
    needsHeaders,
  )
  .superRefine((headers, context) => addHeaderIssues(headers, context, problemOf))
  .transform((headers) => Object.entries(headers).flatMap(([name, value]) => [name.toLowerCase(), value]))

function problemOf(name: string, isRepeated: boolean): string | undefined {
  if (!headerName.test(name)) return 'the name of a header needs 1 to 64 letters, digits and dashes'
  if (ownHeaders.has(name) || ownPrefixes.test(name))
    return `${name} is set by the gateway or the client, and cannot be here`
  return isRepeated ? `${name} appears twice` : undefined
}
