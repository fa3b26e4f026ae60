/** Of one `Content-Type`, or of all lines of it together. */
const mention = /charset/gi
const utf8 = /[;,]\s*charset\s*=\s*"?(?:utf-?8|us-ascii)"?\s*(?=[;,]|$)/gi
const latin1 = /[;,]\s*charset\s*=\s*"?(?:iso-8859-1|latin-?1)"?\s*(?=[;,]|$)/gi
const utf16 = /[;,]\s*charset\s*=\s*"?utf-16(?:le|be)?"?\s*(?=[;,]|$)/gi

/** Charsets that a `Content-Type` names. */
export type NamedCharsets = {
  /** Some that is not UTF-8, of which ASCII is a part. */
  readonly hasOther: boolean
  /**
   * Another than UTF-8, ASCII, Latin-1 and UTF-16. In UTF-7, ISO-2022, EBCDIC or Python's `unicode_escape`, which frameworks decode,
   * bytes mean other letters, and a letter can be written in any number of ways.
   */
  readonly hasUnknown: boolean
  readonly hasUtf16: boolean
}

const onlyUtf8: NamedCharsets = { hasOther: false, hasUnknown: false, hasUtf16: false }

/** A charset in any unusual form, such as `charset*=utf-8''x`, is unknown. */
export function charsetsIn(contentType: string): NamedCharsets {
  const named = countOf(contentType, mention)
  if (named === 0) return onlyUtf8
  const others = named - countOf(contentType, utf8)
  const wide = countOf(contentType, utf16)
  return {
    hasOther: others > 0,
    hasUnknown: others > wide + countOf(contentType, latin1),
    hasUtf16: wide > 0,
  }
}

function countOf(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0
}
