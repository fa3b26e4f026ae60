const dotSegments = /\/(?:\.|%2e){1,2}(?:\/|$)/i

/**
 * Resolves the dot segments of a path, escaped or not (RFC 3986 section 5.2.4: an empty segment counts as a segment, and `..` at the root
 * is dropped). All other bytes stay as sent. The function is idempotent.
 *
 * @param path must begin with `/`
 */
export function resolveDotSegments(path: string): string {
  if (!dotSegments.test(path)) return path
  const kept: string[] = []
  let endsInSlash = false
  for (const segment of path.slice(1).split('/')) {
    const name = segment.length > 6 ? segment : segment.replace(/%2e/gi, '.')
    endsInSlash = name === '.' || name === '..'
    if (name === '..') kept.pop()
    else if (name !== '.') kept.push(segment)
  }
  if (endsInSlash) kept.push('')
  return `/${kept.join('/')}`
}

/** @returns undefined if `..` climbs above the root */
export function resolveNames(segments: readonly string[]): string[] | undefined {
  const kept: string[] = []
  for (const segment of segments) {
    if (segment === '..') {
      if (kept.pop() === undefined) return undefined
    } else if (segment !== '.') kept.push(segment)
  }
  return kept
}
