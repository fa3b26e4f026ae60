/** Finds each charset in a `Content-Type`, or in all of its lines together. */
const mention = /charset/gi
/** Names of UTF-8 and ASCII, including variants that programs write. */
export const utf8Names = /utf[-_]?8(?:mb4)?|(?:us-)?ascii/
export const latin1Names = /iso[-_]8859-1|latin-?1|binary/
/** A `charset` without a value counts as absent. */
const utf8 = new RegExp(
  `(?<=[;,\\s])charset\\s*[=:]\\s*(?:["']?(?:${utf8Names.source})["']?\\s*)?(?=[;,]|$)`,
  'gi',
)
const latin1 = new RegExp(`[;,]\\s*charset\\s*=\\s*"?(?:${latin1Names.source})"?\\s*(?=[;,]|$)`, 'gi')
const utf16 = /[;,]\s*charset\s*=\s*"?utf-16(?:le|be)?"?\s*(?=[;,]|$)/gi

/** Charsets that encode ASCII text as itself. */
const ofAscii =
  /[;,]\s*charset\s*=\s*"?(?:iso[-_]8859-\d{1,2}|latin-?\d|binary|windows-125\d|koi8-[ru]|shift_jis|euc-(?:jp|kr)|gbk|gb2312|gb18030|big5)"?\s*(?=[;,]|$)/gi

/** The charsets that a `Content-Type` names. */
export type NamedCharsets = {
  /** Whether a charset other than UTF-8 and ASCII is named. */
  readonly hasOther: boolean
  /** Whether a charset other than UTF-8 and Latin-1 is named that encodes ASCII as itself: Windows-1252, KOI8-R, Shift JIS. */
  readonly hasLegacy: boolean
  /**
   * Whether any other charset except UTF-16 is named. In UTF-7, ISO-2022, EBCDIC or Python's `unicode_escape`, which frameworks decode,
   * bytes mean other letters, and a letter can be written in any number of ways.
   */
  readonly hasUnknown: boolean
  readonly hasUtf16: boolean
}

const onlyUtf8: NamedCharsets = { hasOther: false, hasLegacy: false, hasUnknown: false, hasUtf16: false }

/** Reads the charsets in a `Content-Type`. A charset in an unusual form, such as `charset*=utf-8''x`, is unknown. */
export function charsetsIn(contentType: string): NamedCharsets {
  const named = countOf(contentType, mention)
  if (named === 0) return onlyUtf8
  const others = named - countOf(contentType, utf8)
  const wide = countOf(contentType, utf16)
  const based = countOf(contentType, ofAscii)
  return {
    hasOther: others > 0,
    hasLegacy: based > countOf(contentType, latin1),
    hasUnknown: others > wide + based,
    hasUtf16: wide > 0,
  }
}

/** The usual types, without a charset or with UTF-8. */
const usualType = /^[\w/+.-]*(?:; ?charset=utf-8)?$/i
const beyondAscii = /[\x80-\xff]|%(?:25)*[89a-f]|content-transfer-encoding/i

/** Whether a text may have non-ASCII characters: literally, in escapes, or in a part with a transfer encoding. */
export function isBeyondAscii(text: string): boolean {
  return beyondAscii.test(text)
}

/**
 * Whether backends may decode a query to any text: Django decodes it in the charset of the `Content-Type`, as does Tomcat with
 * `useBodyEncodingForURI`.
 *
 * @param contentType all lines together
 */
export function mayRespellQuery(contentType: string | undefined, target: string): boolean {
  if (contentType === undefined || usualType.test(contentType)) return false
  const named = countOf(contentType, mention)
  if (named === 0) return false
  const others = named - countOf(contentType, utf8)
  return others > countOf(contentType, ofAscii) || (others > 0 && isBeyondAscii(target))
}

function countOf(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0
}
