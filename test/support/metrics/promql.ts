/** A selector of a query: `name{label="value",other=~"…"}`. */
export type Selector = {
  readonly name: string
  readonly matchers: readonly { readonly label: string; readonly operator: string; readonly value: string }[]
}

/** Words of PromQL that are followed by a parenthesis, or that stand where a name could. */
const words = new Set([
  ...[
    'by',
    'without',
    'on',
    'ignoring',
    'group_left',
    'group_right',
    'and',
    'or',
    'unless',
    'bool',
    'offset',
  ],
  ...[
    'sum',
    'max',
    'min',
    'avg',
    'count',
    'rate',
    'increase',
    'changes',
    'absent',
    'histogram_quantile',
    'label_values',
    'time',
  ],
])

/**
 * Returns what a query selects, and the labels that it groups by. Reads only as much of PromQL as the dashboard and the alerts of this
 * repository use: any other word throws.
 */
export function readQuery(query: string): {
  readonly selectors: readonly Selector[]
  readonly labels: readonly string[]
} {
  const selectors: Selector[] = []
  const labels: string[] = []
  const groups = /\b(?:by|without|on|ignoring) ?\(([^)]*)\)/g
  const ungrouped = query.replace(groups, (_, list: string) => {
    labels.push(...list.split(',').map((label) => label.trim()))
    return ''
  })
  for (const [, name = '', matchers] of ungrouped
    .replace(/\[[^\]]*\]/g, '')
    .matchAll(/(?<![\w"$.])([a-z_][a-z0-9_]*)(\{[^}]*\})?/g)) {
    if (words.has(name) && matchers === undefined) continue
    selectors.push({ name, matchers: readMatchers(matchers ?? '{}') })
  }
  if (selectors.length === 0) throw new Error(`selects nothing: ${query}`)
  return { selectors, labels }
}

function readMatchers(text: string): Selector['matchers'] {
  return text
    .slice(1, -1)
    .split(',')
    .filter((matcher) => matcher !== '')
    .map((matcher) => {
      const [, label = '', operator = '', value] = /^(\w+)(=|!=|=~|!~)"([^"]*)"$/.exec(matcher.trim()) ?? []
      if (value === undefined) throw new Error(`no matcher: ${matcher}`)
      return { label, operator, value }
    })
}
