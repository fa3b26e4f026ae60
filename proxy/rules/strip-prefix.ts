import { beginsWithScheme, type Target } from '../request/target.ts'
import { readMatchPaths } from '../request/match-path.ts'
import { createPathTree, findInTree, readPattern, valueAt } from './path-tree.ts'

/** What is left of a target, and what was taken off. */
export type Stripped = {
  /** As the pattern writes it: `/v1`. */
  readonly prefix: string
  /** Path and query for the request line of the backend. */
  readonly target: string
}

/** @returns undefined where the prefix cannot be taken off so that everybody reads the rest alike: the request is refused */
export type StripPrefix = (
  target: Pick<Target, 'path' | 'forwardTarget' | 'matchPath'>,
) => Stripped | undefined

/**
 * Takes the literal prefix of a pattern off the paths that match it: under `/v1/*`, `/v1/x` is `/x` to the backend.
 *
 * Rules have read the whole path, in every way in which a backend may read it. That they have read what the backend gets is
 * certain only if each reading of the rest, with the prefix before it, is one of the whole. So the prefix has to stand in the path by itself:
 * `/v1%2Fx`, `/v1;a/x` and `/a/..;/v1/x` take the route and are refused. And what climbs above its root in a reading of the rest is
 * refused, as it is in the whole path.
 *
 * @param paths the patterns of a route; of those that match, the one with the longest prefix counts
 */
export function createPrefixStripper(paths: readonly string[]): StripPrefix {
  const tree = createPathTree<string>()
  for (const path of paths) valueAt(tree, readPattern(path), () => literalPrefix(path))
  return ({ path, forwardTarget, matchPath }) => {
    const found: string[] = []
    findInTree(tree, matchPath, 1, found)
    const prefix = found.reduce((longest, each) => (each.length > longest.length ? each : longest), '')
    if (prefix === '') return undefined
    const rest = path.slice(prefix.length) || '/'
    if (!rest.startsWith('/') || !isSameText(path.slice(0, prefix.length), prefix)) return undefined
    if (beginsWithScheme.test(rest) || typeof readMatchPaths(rest) === 'string') return undefined
    return { prefix, target: rest + forwardTarget.slice(path.length) }
  }
}

/** @returns what a pattern begins with before its first `:name` or `*`, without a slash at the end; empty where that is nothing */
export function literalPrefix(pattern: string): string {
  return pattern.replace(/\/(?::.*|\*)?$/s, '')
}

/** Whether the beginning of a path is a prefix in another letter case at most. */
function isSameText(beginning: string, prefix: string): boolean {
  return beginning === prefix || beginning.toLowerCase() === prefix.toLowerCase()
}
