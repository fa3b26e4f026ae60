import type { Policy } from '../../policy.ts'

/** One pattern of one rule. */
export type Mark = {
  /** The rule's place in the table. */
  readonly order: number
  readonly policy: Policy
  /** The rule does not match what the pattern matches. */
  readonly isException: boolean
  /** Upper-case; undefined is every method. */
  readonly methods: ReadonlySet<string> | undefined
}

/** What the rules say of one path. Lists are in the table's order. */
export type PathRules = {
  /** @param method letter case is ignored */
  forMethod(method: string): readonly Policy[]
  /** Of the rules that match under some method. */
  forSomeMethod(): readonly Policy[]
}

const none: readonly Policy[] = Object.freeze([])

export const noPathRules: PathRules = { forMethod: () => none, forSomeMethod: () => none }

/** For one request, of the marks of all patterns that match its path: answers when asked. */
export function lazyPathRules(marks: readonly Mark[]): PathRules {
  const ordered = inTableOrder(marks)
  return {
    forMethod: (method) => selectPolicies(ordered, method.toUpperCase()),
    forSomeMethod: () => compiledPathRules(ordered).forSomeMethod(),
  }
}

/** The same with all answers made beforehand. `noPathRules` where no rule matches under any method. */
export function compiledPathRules(marks: readonly Mark[]): PathRules {
  const ordered = inTableOrder(marks)
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

function inTableOrder(marks: readonly Mark[]): readonly Mark[] {
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
