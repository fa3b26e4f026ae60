import { isUtf8 } from 'node:buffer'
import { unescapedBytes } from './unescaped.ts'

/** A malformed escape: some backends then decode no other escape of the value. */
export const malformedEscape = /%(?![\da-f]{2})/i

/** A text as sent, decoded once, and decoded as often as some backend decodes it; one character per byte. */
export function unescapedTexts(text: string): readonly string[] {
  if (!/[%+]/.test(text)) return [text]
  return [
    text,
    decodedOnce(text),
    decodedOnce(text.replaceAll('+', ' ')),
    unescapedBytes(text, false).toString('latin1'),
  ]
}

/** Decodes escapes once, to one character a byte. */
function decodedOnce(text: string): string {
  return text.replaceAll(/%([\da-f]{2})/gi, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  )
}

/** Whether all escapes in a text are hexadecimal digits and UTF-8. Of other texts some backends leave out a value, or all values. */
export function hasValidEscapes(text: string): boolean {
  if (!text.includes('%')) return true
  return !malformedEscape.test(text) && isUtf8(Buffer.from(decodedOnce(text), 'latin1'))
}
