import { comparable } from '../../request/target/comparable-path.ts'
import { readMatchPaths } from '../../request/target/match-path.ts'

/**
 * Finds the values of the patterns that match a path, in time that depends on the path and on the patterns that
 * begin like it, not on the number of patterns. For patterns with a `:name` or a final `*`; literal paths need only a Map.
 *
 * Each node has one parent, so a walk visits a node at most once. No path can make a walk exponential.
 */
export type PathTree<Value> = {
  readonly literals: Map<string, PathTree<Value>>
  any: PathTree<Value> | undefined
  /** The value of the pattern that ends here. */
  ending: Value | undefined
  /** The value of the pattern that ends with `*` below this node. The `*` may match nothing: `/api/*` matches `/api`. */
  beginning: Value | undefined
}

const anySegment = Symbol(':name')
const anyRest = Symbol('*')

/** A pattern's segments. Literal segments have the form of the paths that the pattern matches. */
export type PathPattern = readonly (string | typeof anySegment | typeof anyRest)[]

/**
 * Reads a pattern of the limits table. Literal segments get the form of a match path, so letter case, `;parameters`,
 * escapes and a slash at the end make no difference in a pattern either.
 */
export function readPattern(path: string): PathPattern {
  return readSegments(path, readLiteral)
}

/** Reads a pattern that matches `routePath`, in which only letter case and escapes make no difference. */
export function readRoutePattern(path: string): PathPattern {
  return readSegments(path, (segment) => (segment === '' ? [] : [comparable(segment)]))
}

function readSegments(path: string, readName: (segment: string) => string[]): PathPattern {
  const segments = path.split('/').slice(1)
  return segments.flatMap((segment, i): PathPattern => {
    if (segment.startsWith(':')) return [anySegment]
    if (segment === '*' && i === segments.length - 1) return [anyRest]
    return readName(segment)
  })
}

function readLiteral(segment: string): string[] {
  const read = readMatchPaths(`/${segment}`, { hasFormat: false })
  return typeof read === 'string' ? [] : read.matchPath.split('/').filter((name) => name !== '')
}

/** @returns the one match path that the pattern matches, undefined if it matches many */
export function literalPath(pattern: PathPattern): string | undefined {
  const literals = pattern.filter((segment) => typeof segment === 'string')
  return literals.length === pattern.length ? `/${literals.join('/')}` : undefined
}

/** Whether a pattern matches a path. For a single pattern, without a tree. */
export function matchesSegments(pattern: PathPattern, segments: readonly string[]): boolean {
  const hasRest = pattern.at(-1) === anyRest
  const named = hasRest ? pattern.slice(0, -1) : pattern
  if (hasRest ? segments.length < named.length : segments.length !== named.length) return false
  return named.every((segment, i) => segment === anySegment || segment === segments[i])
}

/** An empty tree, to which `valueAt` adds patterns. */
export function createPathTree<Value>(): PathTree<Value> {
  return { literals: new Map(), any: undefined, ending: undefined, beginning: undefined }
}

/** @returns the value of the pattern, made on first use */
export function valueAt<Value>(tree: PathTree<Value>, pattern: PathPattern, create: () => Value): Value {
  let node = tree
  for (const segment of pattern) {
    if (segment === anyRest) return (node.beginning ??= create())
    if (segment === anySegment) node = node.any ??= createPathTree()
    else {
      const next = node.literals.get(segment) ?? createPathTree()
      node.literals.set(segment, next)
      node = next
    }
  }
  return (node.ending ??= create())
}

/**
 * Appends the values of the matching patterns to `found`.
 *
 * @param from the index at which the path's next segment begins
 */
export function findInTree<Value>(
  tree: PathTree<Value>,
  matchPath: string,
  from: number,
  found: Value[],
): void {
  if (tree.beginning !== undefined) found.push(tree.beginning)
  if (from >= matchPath.length) {
    if (tree.ending !== undefined) found.push(tree.ending)
    return
  }
  const slash = matchPath.indexOf('/', from)
  const end = slash === -1 ? matchPath.length : slash
  const literal = tree.literals.size === 0 ? undefined : tree.literals.get(matchPath.slice(from, end))
  if (literal) findInTree(literal, matchPath, end + 1, found)
  if (tree.any) findInTree(tree.any, matchPath, end + 1, found)
}
