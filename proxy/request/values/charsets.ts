/** The charsets of one `Content-Type`, or of all lines of it together. */
const mention = /charset/gi
/** Names of UTF-8 and ASCII, with what programs write in place of them. */
export const utf8Names = /utf[-_]?8(?:mb4)?|(?:us-)?ascii/
export const latin1Names = /iso[-_]8859-1|latin-?1|binary/
/** A parameter without a name is read as if it were not there. */
const utf8 = new RegExp(
  `(?<=[;,\\s])charset\\s*[=:]\\s*(?:["']?(?:${utf8Names.source})["']?\\s*)?(?=[;,]|$)`,
  'gi',
)
const latin1 = new RegExp(`[;,]\\s*charset\\s*=\\s*"?(?:${latin1Names.source})"?\\s*(?=[;,]|$)`, 'gi')
const utf16 = /[;,]\s*charset\s*=\s*"?utf-16(?:le|be)?"?\s*(?=[;,]|$)/gi

/** Charsets in which a text of ASCII alone is written as itself. */
const ofAscii =
  /[;,]\s*charset\s*=\s*"?(?:iso[-_]8859-\d{1,2}|latin-?\d|binary|windows-125\d|koi8-[ru]|shift_jis|euc-(?:jp|kr)|gbk|gb2312|gb18030|big5)"?\s*(?=[;,]|$)/gi

/** Charsets that a `Content-Type` names. */
export type NamedCharsets = {
  /** Whether a charset other than UTF-8 is named that has ASCII as a part. */
  readonly hasOther: boolean
  /** Whether a charset other than UTF-8 and Latin-1 is named that writes ASCII as itself: Windows-1252, KOI8-R, Shift JIS. */
  readonly hasLegacy: boolean
  /**
   * Any other, but for UTF-16. In UTF-7, ISO-2022, EBCDIC or Python's `unicode_escape`, which frameworks decode,
   * bytes mean other letters, and a letter can be written in any number of ways.
   */
  readonly hasUnknown: boolean
  readonly hasUtf16: boolean
}

const onlyUtf8: NamedCharsets = { hasOther: false, hasLegacy: false, hasUnknown: false, hasUtf16: false }

/** A charset in any unusual form, such as `charset*=utf-8''x`, is unknown. */
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

/** The type of nearly all requests that have one: without a charset, or with UTF-8. */
const usualType = /^[\w/+.-]*(?:; ?charset=utf-8)?$/i
const beyondAscii = /[\x80-\xff]|%(?:25)*[89a-f]|content-transfer-encoding/i

/** Whether a text may have characters other than ASCII: literal, in escapes, or in a part in base64. */
export function isBeyondAscii(text: string): boolean {
  return beyondAscii.test(text)
}

/**
 * Whether a query may say anything: Django decodes it in the charset of the `Content-Type`, as Tomcat does with `useBodyEncodingForURI`.
 *
 * @param contentType of all lines together
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
