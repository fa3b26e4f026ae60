import { linesOf } from '../../../http/message/headers.ts'
import { charsetsIn } from '../../../request/values/charsets.ts'
import type { UnreadKey } from '../../../telemetry/telemetry.ts'

/** How the head of a request describes its body. */
export type BodyFormat = {
  /** The format; undefined for a type that is not read, and for several types. */
  readonly kind: 'json' | 'form' | 'multipart' | undefined
  /** The values of all lines together. */
  readonly contentType: string
  /** Whether some line names a charset other than UTF-8. */
  readonly hasOtherCharset: boolean
  /** Whether some line names a charset of which only ASCII is read, because other bytes could spell any name. */
  readonly hasLegacyCharset: boolean
  readonly hasUtf16: boolean
  /** Whether some line names a charset of which no values are read, because they could spell any name. */
  readonly hasUnknownCharset: boolean
  /** The values of `Content-Encoding` other than `identity`, in the order in which they were applied. */
  readonly codings: readonly string[]
  /** Why, judging by the head, backends could read the body differently. */
  readonly unread: UnreadKey | undefined
}

/** @param rawHeaders name, value, name, value… */
export function bodyFormatOf(rawHeaders: readonly string[]): BodyFormat {
  const types = linesOf(rawHeaders, 'content-type')
  const [line = '', ...others] = types
  const kind = others.length > 0 ? undefined : kindOf(line)
  const contentType = types.join(', ')
  const {
    hasOther: hasOtherCharset,
    hasLegacy: hasLegacyCharset,
    hasUnknown,
    hasUtf16,
  } = charsetsIn(contentType)
  // Python decodes whole forms as UTF-16, including names and escapes. JSON in UTF-16 is read here.
  const hasUnknownCharset = hasUnknown || (hasUtf16 && kind !== 'json')
  const codings = linesOf(rawHeaders, 'content-encoding')
    .flatMap((encoding) => encoding.split(','))
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== 'identity')
  const described = {
    kind,
    contentType,
    hasOtherCharset,
    hasLegacyCharset,
    hasUtf16,
    hasUnknownCharset,
    codings,
  }
  if (codings.length > 0) return { ...described, unread: 'encoding' }
  if (kind === undefined) return { ...described, unread: 'type' }
  return { ...described, unread: hasOtherCharset ? 'charset' : undefined }
}

function kindOf(line: string): BodyFormat['kind'] {
  // Backends differ in which type of a list they take.
  if (line.includes(',')) return undefined
  const type = line.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (isJson.test(type)) return 'json'
  if (type === 'application/x-www-form-urlencoded') return 'form'
  return type === 'multipart/form-data' ? 'multipart' : undefined
}

const isJson = /^(?:application\/(?:[\w.+-]+\+)?json|text\/json)$/
