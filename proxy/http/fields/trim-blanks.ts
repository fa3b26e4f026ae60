/** A space or a tab: the only blanks around the value of a header that are no part of it (RFC 9110 section 5.5). */
function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

/**
 * The part of a text between two offsets, without the blanks around it, in linear time: the expression `[\t ]+$` would start again at
 * each blank within a value.
 */
export function trimBlanks(text: string, start = 0, end = text.length): string {
  while (start < end && isBlank(text.charCodeAt(start))) start++
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}
