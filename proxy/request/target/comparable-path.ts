import { unescape } from 'node:querystring'

/**
 * Returns the form in which paths are compared: escapes decoded once, letters folded. `%25`, `%2F`, `%3B` and `%5C` stay escaped, because
 * their meaning depends on the backend. The result must never be forwarded.
 *
 * @param path every `%` must begin an escape
 */
export function comparable(path: string): string {
  const decoded = path.includes('%') ? unescape(path.replace(/%(?=25|2F|3B|5C)/gi, '%25')) : path
  // Upper case first, because it turns `ſ` and `ı` into the letters that backends read them as.
  return decoded.toUpperCase().toLowerCase().replaceAll('i\u0307', 'i')
}

/**
 * Returns the form for a backend that decodes twice.
 *
 * @param text a result of `comparable`
 * @returns the text itself if decoding again changes nothing
 */
export function decodedAgain(text: string): string {
  return text.replace(/(?:%25[0-9a-f]{2})+/g, (escapes) => comparable(escapes.replaceAll('%25', '%')))
}

const dropped = /\+|%(?:25)?(?:20|2b|[89a-f][0-9a-f])/gi

/**
 * Returns a path without the characters that some backends drop: bytes that are not UTF-8 (Bottle 0.13), or spaces and everything beyond
 * ASCII (PHP's `FILTER_SANITIZE_URL`). A `+` becomes a space if a rewrite rule makes a query of the path. Names that consist of such
 * characters are kept, because pages in other scripts have them, and are not their folder.
 */
export function withoutDropped(path: string): string {
  if (path.search(dropped) === -1) return path
  const names = path.split('/')
  return names.map((name) => name.replace(dropped, '') || name).join('/')
}

/** Removes the characters of a name that some backends ignore: spaces around it, and dots at its end. */
export function trimmed(name: string): string {
  let start = 0
  let end = name.length
  while (start < end && name[start] === ' ') start += 1
  while (end > start && name[end - 1] === ' ') end -= 1
  if (start === end) return ''
  while (end > start && (name[end - 1] === ' ' || name[end - 1] === '.')) end -= 1
  // No backend reads `.. ` as `..`.
  return start === end ? name : name.slice(start, end)
}
