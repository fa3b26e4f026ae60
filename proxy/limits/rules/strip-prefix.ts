import { beginsWithUrl, type Target } from '../../request/target/target.ts'
import { readRequestPath } from '../../request/target/recent-paths.ts'
import { createPathTree, findInTree, readRoutePattern, valueAt } from './path-tree.ts'

/** The rest of a target, and the prefix removed from it. */
export type Stripped = {
  /** The prefix as the pattern writes it: `/v1`. */
  readonly prefix: string
  /** Path and query for the request line of the backend. */
  readonly target: string
}

/** @returns undefined if backends might not read the rest alike without the prefix: the request is refused */
export type StripPrefix = (
  target: Pick<Target, 'path' | 'forwardTarget' | 'routePath'>,
) => Stripped | undefined

/**
 * Makes a function that removes the literal prefix of a pattern from the paths that match it: under `/v1/*`, the backend gets `/v1/x` as
 * `/x`. The rest stays as the client sent it.
 *
 * Rules have matched every reading of the whole path. They have certainly matched the path that the backend reads only if each reading of
 * the rest, with the prefix before it, is also a reading of the whole path. So a request is refused if the rest climbs above its root in
 * some reading, as it is if the whole path does: `/v1/..;/x`.
 *
 * @param paths the patterns of a route; if several match, the one with the longest prefix counts
 */
export function createPrefixStripper(paths: readonly string[]): StripPrefix {
  const tree = createPathTree<string>()
  for (const path of paths) valueAt(tree, readRoutePattern(path), () => literalPrefix(path))
  return ({ path, forwardTarget, routePath }) => {
    const found: string[] = []
    findInTree(tree, routePath, 1, found)
    const prefix = found.reduce((longest, each) => (each.length > longest.length ? each : longest), '')
    if (prefix === '') return undefined
    const end = endOfNames(path, prefix.split('/').length - 1)
    const rest = path.slice(end) || '/'
    // Rules read the text after a `//` as a host only once.
    if (rest.startsWith('//') && path.lastIndexOf('//', end - 1) !== -1) return undefined
    if (beginsWithUrl(rest) || typeof readRequestPath(rest, { hasFormat: false }) === 'string')
      return undefined
    return { prefix, target: rest + forwardTarget.slice(path.length) }
  }
}

/** @returns the index where the first `count` names of a path end, no matter how many slashes separate them */
function endOfNames(path: string, count: number): number {
  let at = 0
  for (let left = count; left > 0; left--) {
    while (path[at] === '/') at += 1
    const slash = path.indexOf('/', at)
    at = slash === -1 ? path.length : slash
  }
  return at
}

/** @returns the literal prefix of a pattern before its first `:name` or `*`, without a slash at the end; empty if there is none */
export function literalPrefix(pattern: string): string {
  return pattern.replace(/\/(?::.*|\*)?$/s, '')
}
