/**
 * All lines of a field: over HTTP/2 Node's `headers` has only the first one of some.
 *
 * @param rawHeaders name, value, name, value…
 * @param name in lower case
 */
export function linesOf(rawHeaders: readonly string[], name: string): string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name)
}
