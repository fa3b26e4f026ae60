import { numberValues } from '../../request/values/number-values.ts'
import { comparableTexts } from '../../request/values/comparable/comparable-text.ts'
import { readMatchPaths, type MatchPaths } from '../../request/target/match-path.ts'
import { matchesSegments, readPattern, type PathPattern } from './path-tree.ts'

/** A pattern, and the index of the segment to read from matching paths. */
type PlacedName = { readonly pattern: PathPattern; readonly place: number }

/**
 * Makes a function that finds the values of a `:name` in a rule's patterns. Each reading of a path may have a different
 * value there; one of them is the value that the backend reads.
 *
 * @param patterns all patterns of the rule; each has the name once, and patterns that match the same paths have it in the
 *   same segment
 * @param isNumber whether the backend reads the value as a whole number
 * @returns a function that returns the values without duplicates, in the form of match paths; an empty value counts as one
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
  // One more than the longest pattern has, so that a longer path is not taken for one that ends there.
  const maxSegments = Math.max(...placed.map(({ pattern }) => pattern.length)) + 1
  return ({ matchPath, otherMatchPaths, shortened }) => {
    const values = new Set<string>()
    for (const reading of [matchPath, ...otherMatchPaths]) {
      const segments = segmentsOf(reading, maxSegments)
      const found = placed.find(({ pattern }) => matchesSegments(pattern, segments))
      if (!found || (found.place === segments.length - 1 && shortened?.has(reading))) continue
      for (const text of comparableSegments(segments[found.place] ?? ''))
        for (const value of numberValues(text, isNumber)) values.add(value)
    }
    // Without a value, the rule would not count the request. All such requests count under one empty value.
    return values.size === 0 ? [''] : [...values]
  }
}

/**
 * Returns the values that requests may have for a path segment that an operator has written, escaped or not.
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
    if (typeof read === 'string') return []
    return [read.matchPath, ...read.otherMatchPaths].filter((reading) => !read.shortened?.has(reading))
  })
  const values = readings
    .map((reading) => segmentsOf(reading))
    .flatMap((all) => (all.length === 1 ? all : []))
  return [...new Set(values.flatMap(comparableSegments))].filter((value) => value !== '')
}

/** Returns a segment as databases compare accounts, in which `ádmin` is `admin`. */
function comparableSegments(segment: string): readonly string[] {
  return comparableTexts(segment).map((text) => text || segment)
}

/** The segments of a match path, including an empty one at the end; at most `max` of them. */
function segmentsOf(reading: string, max?: number): string[] {
  if (reading === '/') return []
  return (reading.endsWith('/') ? reading.slice(1, -1) : reading.slice(1)).split('/', max)
}
