import { unescape } from 'node:querystring'

/**
 * The form in which paths are compared: escapes decoded once and letters folded. `%25`, `%2F`, `%3B` and `%5C` stay escapes: what
 * they mean depends on the backend. Text to look up, never to forward.
 *
 * @param path every `%` in it begins an escape
 */
export function comparable(path: string): string {
  const decoded = path.includes('%') ? unescape(path.replace(/%(?=25|2F|3B|5C)/gi, '%25')) : path
  // Upper case first: it turns `ſ` and `ı` into the letters that they are taken for.
  return decoded.toUpperCase().toLowerCase().replaceAll('i\u0307', 'i')
}

/**
 * The same for a backend that decodes twice.
 *
 * @param text of `comparable`
 * @returns the text itself where that makes no difference
 */
export function decodedAgain(text: string): string {
  return text.replace(/(?:%25[0-9a-f]{2})+/g, (escapes) => comparable(escapes.replaceAll('%25', '%')))
}

/** A name without what some backends ignore of it: spaces around it, dots at its end. */
export function trimmed(name: string): string {
  let start = 0
  let end = name.length
  while (start < end && name[start] === ' ') start += 1
  while (end > start && name[end - 1] === ' ') end -= 1
  if (start === end) return ''
  while (end > start && (name[end - 1] === ' ' || name[end - 1] === '.')) end -= 1
  // No backend takes `.. ` for `..`.
  return start === end ? name : name.slice(start, end)
}
