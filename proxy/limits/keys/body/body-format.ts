import { linesOf } from '../../../http/message/headers.ts'
import type { UnreadKey } from '../../../telemetry/telemetry.ts'

/** How the head of a request describes its body. */
export type BodyFormat = {
  /** Undefined for a type that is not read, and where several are named. */
  readonly kind: 'json' | 'form' | 'multipart' | undefined
  /** Of all lines together. */
  readonly contentType: string
  /** Some line names a charset other than UTF-8. */
  readonly hasOtherCharset: boolean
  /** Of `Content-Encoding`, but for `identity`, in the order in which they were applied. */
  readonly codings: readonly string[]
  /** What backends could read otherwise, as the head says. */
  readonly unread: UnreadKey | undefined
}

/** @param rawHeaders name, value, name, value… */
export function bodyFormatOf(rawHeaders: readonly string[]): BodyFormat {
  const types = linesOf(rawHeaders, 'content-type')
  const [line = '', ...others] = types
  const kind = others.length > 0 ? undefined : kindOf(line)
  const contentType = types.join(', ')
  const hasOtherCharset = isOtherCharset(contentType)
  const codings = linesOf(rawHeaders, 'content-encoding')
    .flatMap((encoding) => encoding.split(','))
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== 'identity')
  const described = { kind, contentType, hasOtherCharset, codings }
  if (codings.length > 0) return { ...described, unread: 'encoding' }
  if (kind === undefined) return { ...described, unread: 'type' }
  return { ...described, unread: hasOtherCharset ? 'charset' : undefined }
}

function kindOf(line: string): BodyFormat['kind'] {
  // A list in one line: backends differ in which of them they take.
  if (line.includes(',')) return undefined
  const type = line.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (isJson.test(type)) return 'json'
  if (type === 'application/x-www-form-urlencoded') return 'form'
  return type === 'multipart/form-data' ? 'multipart' : undefined
}

const isJson = /^(?:application\/(?:[\w.+-]+\+)?json|text\/json)$/

function isOtherCharset(contentType: string): boolean {
  const named = contentType.match(/charset/gi) ?? []
  return (
    named.length >
    (contentType.match(/[;,]\s*charset\s*=\s*"?(?:utf-?8|us-ascii)"?\s*(?=[;,]|$)/gi) ?? []).length
  )
}
