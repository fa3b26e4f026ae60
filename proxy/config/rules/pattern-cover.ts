import type { RoutePattern } from '../../policy.ts'

/** A pattern with its path split into segments, to compare it with others. */
export type SegmentedPattern = {
  readonly methods: readonly string[]
  /** The segments in lower case, without empty ones. */
  readonly segments: readonly string[]
}

/** Splits a pattern into segments in the form in which paths are compared: in lower case, without empty segments. */
export function toSegments({ methods, path }: RoutePattern): SegmentedPattern {
  const segments = path.toLowerCase().split('/')
  return { methods, segments: segments.filter((segment) => segment !== '') }
}

/**
 * Whether other patterns match every request that a pattern matches: `/a/*` covers `/a` and everything below it, GET covers HEAD. Different
 * patterns may cover different methods. Does not find a path that only several patterns together cover.
 */
export function isCovered(pattern: SegmentedPattern, others: readonly SegmentedPattern[]): boolean {
  const covering = others.filter(({ segments }) => coversPath(segments, pattern.segments))
  if (covering.some(({ methods }) => methods.length === 0)) return true
  const covered = new Set(covering.flatMap(({ methods }) => methods))
  if (covered.has('GET')) covered.add('HEAD')
  return pattern.methods.length > 0 && pattern.methods.every((method) => covered.has(method))
}

function coversPath(wide: readonly string[], narrow: readonly string[]): boolean {
  for (const [index, segment] of wide.entries()) {
    if (segment === '*') return true
    const other = narrow[index]
    const covers = segment.startsWith(':') ? other !== undefined && other !== '*' : segment === other
    if (!covers) return false
  }
  return wide.length === narrow.length
}
