import { numberValues } from '../../request/values/number-values.ts'
import { readMatchPaths, type MatchPaths } from '../../request/target/match-path.ts'
import { matchesSegments, readPattern, type PathPattern } from './path-tree.ts'

/** A pattern, and the index of the segment that is looked for in matching paths. */
type PlacedName = { readonly pattern: PathPattern; readonly place: number }

/**
 * Finds the value of a `:name` of a rule's patterns. Each reading of a path may have another value there; the
 * backend's is one of them.
 *
 * @param patterns all patterns of the rule; each has the name once, and those that match the same paths have it in the
 *   same place
 * @param isNumber the backend takes it for a whole number
 * @returns finds the values, each once, in the form of match paths; one that is empty is one
 */
export function createPathValues(
  patterns: readonly string[],
  name: string,
  isNumber = false,
): (paths: MatchPaths) => readonly string[] {
  const placed = patterns.map((path): PlacedName => {
    const segments = path.split('/')
    const before = segments.slice(0, segments.indexOf(`:${name}`)).join('/')
    return { pattern: readPattern(path), place: readPattern(before).length }
  })
  // One more than any pattern has: so a path that is longer is not taken for one that ends there.
  const maxSegments = Math.max(...placed.map(({ pattern }) => pattern.length)) + 1
  return ({ matchPath, otherMatchPaths, shortened }) => {
    const values = new Set<string>()
    for (const reading of [matchPath, ...otherMatchPaths]) {
      const segments = segmentsOf(reading, maxSegments)
      const found = placed.find(({ pattern }) => matchesSegments(pattern, segments))
      if (!found || (found.place === segments.length - 1 && shortened?.has(reading))) continue
      for (const value of numberValues(segments[found.place] ?? '', isNumber)) values.add(value)
    }
    // Where none matches, the rule would count nobody: it counts all of these as one.
    return values.size === 0 ? [''] : [...values]
  }
}

/**
 * The forms that a segment of a path has as a value, for one that an operator has written, escaped or not.
 *
 * @returns no values if no segment of a path can have this form
 */
export function pathValuesOfName(text: string): readonly string[] {
  const escaped = text
    .toWellFormed()
    .replace(/%(?![0-9a-f]{2})/gi, '%25')
    .replace(/[^\x21-\x7e]|[/?#\\]/gu, encodeURIComponent)
  // Parameters may follow a semicolon, unless it is escaped.
  const readings = [escaped, escaped.replaceAll(';', '%3b')].flatMap((segment) => {
    const read = readMatchPaths(`/${segment}`, { hasFormat: false })
    return typeof read === 'string' ? [] : [read.matchPath, ...read.otherMatchPaths]
  })
  const values = readings
    .map((reading) => segmentsOf(reading))
    .flatMap((all) => (all.length === 1 ? all : []))
  return [...new Set(values)].filter((value) => value !== '')
}

/** The segments of a match path, including an empty one at the end; at most `max` of them. */
function segmentsOf(reading: string, max?: number): string[] {
  if (reading === '/') return []
  return (reading.endsWith('/') ? reading.slice(1, -1) : reading.slice(1)).split('/', max)
}
