import { nearestWord } from '../../../shared/settings/did-you-mean.ts'
import type { RoutePattern } from '../../policy.ts'
import { partName, singleParts, type PartitionPart, type SinglePart } from '../../policy/partition.ts'
import { toSegments } from './pattern-cover.ts'

/** Adds the rule's paths to the parts of a key that name a segment of the path. */
export function withPatterns(
  parts: readonly PartitionPart[],
  match: readonly RoutePattern[],
): PartitionPart[] {
  const patterns = match.map(({ path }) => path)
  const complete = (part: SinglePart): SinglePart => (part.kind === 'path' ? { ...part, patterns } : part)
  return parts.map((part) =>
    part.kind === 'first' ? { ...part, of: part.of.map(complete) } : complete(part),
  )
}

/** Finds mistakes in the parts of a key that name a segment: every path must have exactly one segment of that name. */
export function mistakeInPathKeys(
  parts: readonly PartitionPart[],
  match: readonly RoutePattern[],
): string | undefined {
  for (const part of singleParts(parts)) {
    if (part.kind !== 'path') continue
    const mistake = mistakeIn(part.name, match)
    if (mistake !== undefined) return `has ${partName(part)}, needs ${mistake}`
  }
  return undefined
}

function mistakeIn(name: string, match: readonly RoutePattern[]): string | undefined {
  const places = match.map((pattern) => ({ pattern, found: placesOf(name, pattern) }))
  for (const { pattern, found } of places) {
    if (found.length === 0)
      return `:${name} in every pattern of match, ${pattern.path} has ${othersIn(name, pattern)}`
    if (found.length > 1) return `:${name} only once in ${pattern.path}`
  }
  for (const [i, { pattern, found }] of places.entries()) {
    const other = places
      .slice(i + 1)
      .find((one) => one.found[0] !== found[0] && overlap(pattern, one.pattern))
    if (other)
      return `:${name} in the same segment of ${pattern.path} and ${other.pattern.path}, which can match the same path`
  }
  return undefined
}

function placesOf(name: string, { path }: RoutePattern): number[] {
  return path.split('/').flatMap((segment, place) => (segment === `:${name}` ? [place] : []))
}

function othersIn(name: string, { path }: RoutePattern): string {
  const names = path.split('/').flatMap((segment) => (segment.startsWith(':') ? [segment.slice(1)] : []))
  const near = nearestWord(name, names)
  if (near !== undefined) return `:${near}`
  return names.length === 0 ? 'no :name' : names.map((other) => `:${other}`).join(', ')
}

/** Whether a path can match both patterns, regardless of their methods. */
function overlap(one: RoutePattern, other: RoutePattern): boolean {
  const [left, right] = [toSegments(one).segments, toSegments(other).segments]
  for (let i = 0; ; i++) {
    const [a, b] = [left[i], right[i]]
    if (a === '*' || b === '*') return true
    if (a === undefined || b === undefined) return a === b
    if (!a.startsWith(':') && !b.startsWith(':') && a !== b) return false
  }
}
