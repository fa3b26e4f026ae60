import type { Steps } from '../../../shared/steps.ts'

/** A table of values for some hosts only, found by the host of a request. */
export type HostTables<Table> = {
  /**
   * @param host in the form of `comparableHost`
   * @returns the values of the name itself and of each `*.` pattern that covers it
   */
  find(host: string): Table[]
}

/** Begins a pattern for all names below a domain. */
const below = '*.'

/**
 * Groups rules by host once, so that the time to find the rules of a host depends on the labels in its name, not on the number of hosts.
 *
 * @param rules rules with at least one host each: a name in the form of `comparableHost`, or `*.` and such a name
 * @param compile makes the value of a host from all its rules, in their order
 */
export function* createHostTables<Rule extends { readonly hosts: readonly string[] }, Table>(
  rules: readonly Rule[],
  compile: (rules: readonly Rule[]) => Steps<Table>,
): Steps<HostTables<Table>> {
  const byPattern = new Map<string, Rule[]>()
  for (const rule of rules) {
    for (const pattern of rule.hosts) {
      const others = byPattern.get(pattern)
      if (others) others.push(rule)
      else byPattern.set(pattern, [rule])
      yield
    }
  }
  const exact = new Map<string, Table>()
  const parents = new Map<string, Table>()
  for (const [pattern, own] of byPattern) {
    if (pattern.startsWith(below)) parents.set(pattern.slice(below.length), yield* compile(own))
    else exact.set(pattern, yield* compile(own))
    yield
  }

  return {
    find(host) {
      const own = exact.get(host)
      const found = own === undefined ? [] : [own]
      if (parents.size === 0) return found
      for (let dot = host.indexOf('.'); dot !== -1; dot = host.indexOf('.', dot + 1)) {
        const table = parents.get(host.slice(dot + 1))
        if (table !== undefined) found.push(table)
      }
      return found
    },
  }
}
