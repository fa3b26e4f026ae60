import type { IncomingHttpHeaders } from 'node:http'
import { doAtOnce, type Steps } from '../../../shared/steps.ts'
import { methodOverrideFields } from '../../http/fields/header-roles.ts'
import { token } from '../../http/message/token.ts'
import { comparableHost } from '../../request/host.ts'
import { withoutEmptyName, type MatchPaths } from '../../request/target/match-path.ts'
import { createHostTables } from './host-tables.ts'
import {
  createPathTree,
  findInTree,
  literalPath,
  readPattern,
  valueAt,
  type PathPattern,
  type PathTree,
} from './path-tree.ts'
import type { Policy, RoutePattern, Rule } from '../../policy.ts'

/** The limits table, compiled once. Matching costs the same with six rules or ten thousand. */
export type RuleTable = {
  /**
   * Returns the policies of all rules that match a request, in the table's order. A rule matches if some reading of the path
   * matches one of its patterns and the same reading matches none of its exceptions. So a spelling that some backend takes for
   * a limited path is limited. A header that overrides the method adds the rules of that method to those of the request's own.
   *
   * @param method as sent; letter case is ignored
   * @param host the forwarded host, from `readHost`
   * @returns the policies, without duplicates
   */
  match(target: MatchPaths, method: string, headers: IncomingHttpHeaders, host: string): readonly Policy[]
}

type MatchPath = (target: MatchPaths, method: string, headers: IncomingHttpHeaders) => readonly Policy[]
type UniqueInTableOrder = (policies: readonly Policy[]) => readonly Policy[]

/** One pattern of one rule. */
type Mark = {
  /** The rule's place in the table. */
  readonly order: number
  readonly policy: Policy
  /** Whether the pattern is one of the rule's exceptions. */
  readonly isException: boolean
  /** In upper case; undefined means every method. */
  readonly methods: ReadonlySet<string> | undefined
}

/** The rules of one path. Lists are in the table's order. */
type PathRules = {
  /** @param method letter case is ignored */
  forMethod(method: string): readonly Policy[]
  /** Returns the policies that match under some method. */
  forSomeMethod(): readonly Policy[]
}

/** The marks of one pattern in the tree, and the rules of a path that matches no other pattern. */
type Leaf = { readonly number: number; readonly marks: Mark[]; pathRules: PathRules }

/** The maximum length of a method in a header that overrides it, in characters. */
const MAX_METHOD_LENGTH = 32

/** Compiles rules. Never throws, because the settings check that each pattern can match. */
export function compileRules(rules: readonly Rule[]): RuleTable {
  return doAtOnce(compileRulesInSteps(rules))
}

/** Compiles rules in steps, so that requests are served while thousands of rules are compiled. */
export function* compileRulesInSteps(rules: readonly Rule[]): Steps<RuleTable> {
  const orders = new Map(rules.map(({ policy }, order) => [policy, order]))
  const uniqueInTableOrder: UniqueInTableOrder = (policies) =>
    [...new Set(policies)].sort((a, b) => (orders.get(a) ?? 0) - (orders.get(b) ?? 0))

  const matchPath = yield* compilePaths(
    rules.filter(({ hosts }) => hosts === undefined),
    uniqueInTableOrder,
  )
  const ofSomeHosts = rules.filter(isOfSomeHosts)
  if (ofSomeHosts.length === 0) return { match: matchPath }

  const tables = yield* createHostTables(ofSomeHosts, (own) => compilePaths(own, uniqueInTableOrder))
  return {
    match(target, method, headers, host) {
      const policies = matchPath(target, method, headers)
      const found = tables.find(comparableHost(host)).flatMap((match) => match(target, method, headers))
      return found.length === 0 ? policies : uniqueInTableOrder([...policies, ...found])
    },
  }
}

function isOfSomeHosts(rule: Rule): rule is Rule & { readonly hosts: readonly string[] } {
  return rule.hosts !== undefined
}

/** Compiles rules without regard to their hosts. */
function* compilePaths(rules: readonly Rule[], uniqueInTableOrder: UniqueInTableOrder): Steps<MatchPath> {
  const findPathRules = yield* compilePathRules(rules)

  const matchPathRules = (
    pathRules: PathRules,
    method: string,
    headers: IncomingHttpHeaders,
  ): readonly Policy[] => {
    let policies = pathRules.forMethod(method)
    if (pathRules === noPathRules) return policies
    for (const field of methodOverrideFields) {
      const override = headers[field]
      if (override) policies = uniqueInTableOrder([...policies, ...matchOverride(pathRules, override)])
    }
    return policies
  }

  return ({ matchPath, otherMatchPaths }, method, headers) => {
    if (otherMatchPaths.length === 0) return matchPathRules(findPathRules(matchPath), method, headers)
    // A path may have hundreds of readings, and most of them match the same patterns.
    const made: MadePathRules = new Map()
    const distinct = new Set([matchPath, ...otherMatchPaths].map((path) => findPathRules(path, made)))
    const [policies = none, ...others] = [...distinct].map((each) => matchPathRules(each, method, headers))
    return others.length === 0 ? policies : uniqueInTableOrder([...policies, ...others.flat()])
  }
}

/** The rules found so far for the readings of one request, keyed by the patterns that match. */
type MadePathRules = Map<string, PathRules>

type PlacedMark = { readonly pattern: PathPattern; readonly mark: Mark }

/** @returns a function that finds the rules of a match path. With `made`, paths that match the same patterns get the same object */
function* compilePathRules(
  rules: readonly Rule[],
): Steps<(matchPath: string, made?: MadePathRules) => PathRules> {
  const { tree, leaves, literals } = yield* placeRules(rules)

  const findLeaves = (matchPath: string): Leaf[] => {
    const found: Leaf[] = []
    findInTree(tree, matchPath, 1, found)
    return found
  }
  const marksOf = (found: readonly Leaf[]): Mark[] => found.flatMap((leaf) => leaf.marks)

  // The rules of literal paths are compiled beforehand, so that a request for such a path costs one look-up.
  const known = new Map<string, PathRules>()
  for (const [path, own] of literals) {
    known.set(path, compiledPathRules([...own, ...marksOf(findLeaves(path))]))
    yield
  }

  /** Returns the rules of a path with an empty last segment, including those of `path` itself; `noPathRules` if no pattern takes it. */
  const findWithEmptyName = (matchPath: string, path: string, made?: MadePathRules): PathRules => {
    const found = findLeaves(path)
    const added = findLeaves(matchPath).filter((leaf) => !found.includes(leaf))
    if (added.length === 0) return noPathRules
    const literal = literals.get(path)
    return madeOnce(made, `${literal ? path : ''} ${keyOf(found)} ${keyOf(added)}`, () =>
      lazyPathRules([...(literal ?? []), ...marksOf(found), ...marksOf(added)]),
    )
  }

  return (matchPath, made) => {
    const pathRules = known.get(matchPath)
    if (pathRules || leaves.size === 0) return pathRules ?? noPathRules
    const path = withoutEmptyName(matchPath)
    if (path !== undefined) return findWithEmptyName(matchPath, path, made)
    const found = findLeaves(matchPath)
    const [only] = found
    if (!only) return noPathRules
    if (found.length === 1) return only.pathRules
    return madeOnce(made, keyOf(found), () => lazyPathRules(marksOf(found)))
  }
}

/** Rules by their patterns: literal paths in a map, all other patterns in a tree. Each of these has a leaf with its compiled rules. */
type PlacedRules = {
  readonly tree: PathTree<Leaf>
  readonly leaves: ReadonlySet<Leaf>
  readonly literals: ReadonlyMap<string, Mark[]>
}

function* placeRules(rules: readonly Rule[]): Steps<PlacedRules> {
  const tree = createPathTree<Leaf>()
  const leaves = new Set<Leaf>()
  const literals = new Map<string, Mark[]>()
  for (const { pattern, mark } of placeMarks(rules)) {
    yield
    const literal = literalPath(pattern)
    if (literal === undefined) {
      const leaf = valueAt(tree, pattern, () => ({ number: leaves.size, marks: [], pathRules: noPathRules }))
      leaf.marks.push(mark)
      leaves.add(leaf)
    } else {
      const others = literals.get(literal)
      if (others) others.push(mark)
      else literals.set(literal, [mark])
    }
  }
  for (const leaf of leaves) {
    leaf.pathRules = compiledPathRules(leaf.marks)
    yield
  }
  return { tree, leaves, literals }
}

function keyOf(leaves: readonly Leaf[]): string {
  return leaves.map(({ number }) => number).join()
}

function madeOnce(made: MadePathRules | undefined, key: string, make: () => PathRules): PathRules {
  if (!made) return make()
  const before = made.get(key)
  if (before) return before
  const pathRules = make()
  made.set(key, pathRules)
  return pathRules
}

/**
 * Returns the policies for a header that overrides the method. If its value is not a single method, backends may read any method from it:
 * from a list, some take the first entry and some the last.
 */
function matchOverride(pathRules: PathRules, override: string | string[]): readonly Policy[] {
  return typeof override === 'string' && override.length <= MAX_METHOD_LENGTH && token.test(override)
    ? pathRules.forMethod(override)
    : pathRules.forSomeMethod()
}

/** Yields marks lazily, because reading a pattern takes time and a rule may have thousands of patterns. */
function* placeMarks(rules: readonly Rule[]): Generator<PlacedMark> {
  for (const [order, { policy, match, except }] of rules.entries()) {
    const place = ({ methods, path }: RoutePattern, isException: boolean): PlacedMark => {
      return {
        pattern: readPattern(path),
        mark: { order, policy, isException, methods: readMethods(methods) },
      }
    }
    for (const pattern of match) yield place(pattern, false)
    for (const pattern of except) yield place(pattern, true)
  }
}

/** HEAD does on the backend what GET does, so a rule for GET also counts HEAD requests. */
function readMethods(methods: readonly string[]): ReadonlySet<string> | undefined {
  if (methods.length === 0) return undefined
  return new Set(methods.includes('GET') ? [...methods, 'HEAD'] : methods)
}

const none: readonly Policy[] = Object.freeze([])

const noPathRules: PathRules = { forMethod: () => none, forSomeMethod: () => none }

/** Makes the rules of a path from the marks of all patterns that match it. Selects policies only when they are requested. */
function lazyPathRules(marks: readonly Mark[]): PathRules {
  const ordered = sortMarks(marks)
  let compiled: PathRules | undefined
  return {
    forMethod: (method) => selectPolicies(ordered, method.toUpperCase()),
    forSomeMethod: () => (compiled ??= compiledPathRules(ordered)).forSomeMethod(),
  }
}

/** Does the same, but selects all policies beforehand. Returns `noPathRules` if no rule matches under any method. */
function compiledPathRules(marks: readonly Mark[]): PathRules {
  const ordered = sortMarks(marks)
  const methods = new Set(ordered.flatMap((mark) => [...(mark.methods ?? [])]))
  const byMethod = new Map([...methods].map((method) => [method, selectPolicies(ordered, method)]))
  const byOther = selectPolicies(ordered, '')
  const matching = new Set([...byMethod.values(), byOther].flat())
  if (matching.size === 0) return noPathRules
  const policies = new Set(ordered.map(({ policy }) => policy))
  const bySome = Object.freeze([...policies].filter((policy) => matching.has(policy)))
  return {
    forMethod: (method) => byMethod.get(method) ?? byMethod.get(method.toUpperCase()) ?? byOther,
    forSomeMethod: () => bySome,
  }
}

function sortMarks(marks: readonly Mark[]): readonly Mark[] {
  return marks.toSorted((a, b) => a.order - b.order)
}

/** @param marks in the table's order */
function selectPolicies(marks: readonly Mark[], method: string): readonly Policy[] {
  const covering = marks.filter(({ methods }) => methods === undefined || methods.has(method))
  const excepted = new Set<number>()
  for (const { isException, order } of covering) if (isException) excepted.add(order)
  const selected = new Set<Policy>()
  for (const { isException, order, policy } of covering) {
    if (!isException && !excepted.has(order)) selected.add(policy)
  }
  return selected.size === 0 ? none : Object.freeze([...selected])
}
