import { isUtf8 } from 'node:buffer'
import { unescapedBytes } from './unescaped.ts'

/** A malformed escape. Some backends then leave the whole value undecoded. */
export const malformedEscape = /%(?![\da-f]{2})/i

/** Returns a text as sent, decoded once, and decoded as often as any backend does; one character per byte. */
export function unescapedTexts(text: string): readonly string[] {
  if (!/[%+]/.test(text)) return [text]
  return [
    text,
    decodedOnce(text),
    decodedOnce(text.replaceAll('+', ' ')),
    unescapedBytes(text, false).toString('latin1'),
  ]
}

/** Decodes escapes once, to one character per byte. */
function decodedOnce(text: string): string {
  return text.replaceAll(/%([\da-f]{2})/gi, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  )
}

/** Whether all escapes in a text are well-formed and valid UTF-8. If not, some backends omit the value, or all values. */
export function hasValidEscapes(text: string): boolean {
  if (!text.includes('%')) return true
  return !malformedEscape.test(text) && isUtf8(Buffer.from(decodedOnce(text), 'latin1'))
}
