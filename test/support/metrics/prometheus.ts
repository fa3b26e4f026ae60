/** One line of an exposition: `name{label="value"} 1`. */
export type Sample = {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export type Exposition = {
  readonly samples: readonly Sample[]
  /** Metric name to type. */
  readonly types: ReadonlyMap<string, string>
  /** The value of the one sample with this name and exactly these labels. Throws if there is no such sample. */
  value(name: string, labels?: Readonly<Record<string, string>>): number
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\["\\\\n])*"'
const SAMPLE = new RegExp(
  `^(${NAME})(?:\\{(${LABEL}(?:,${LABEL})*)\\})? ([-+]?(?:[0-9.]+(?:e[-+]?\\d+)?|Inf|NaN))$`,
)
const COMMENT = new RegExp(`^# (HELP|TYPE) (${NAME}) (.+)$`)

/**
 * Reads Prometheus' text format 0.0.4 strictly: throws for a malformed line, a metric without help and type, and a duplicate sample. It
 * does not know timestamps, as the gateway sends none.
 */
export function parseExposition(text: string): Exposition {
  const samples: Sample[] = []
  const types = new Map<string, string>()
  const helps = new Set<string>()
  const seen = new Set<string>()

  for (const line of text.split('\n')) {
    if (line === '') continue
    const [, keyword, described, rest] = COMMENT.exec(line) ?? []
    if (keyword && described && rest) {
      if (keyword === 'HELP') helps.add(described)
      else if (types.has(described)) throw new Error(`described twice: ${line}`)
      else types.set(described, rest)
      continue
    }
    const [, name, labelText = '', value] = SAMPLE.exec(line) ?? []
    if (!name || !value) throw new Error(`malformed line: ${line}`)
    const family = types.has(name) ? name : name.replace(/_(bucket|sum|count)$/, '')
    if (!types.has(family) || !helps.has(family)) throw new Error(`sample without help and type: ${line}`)
    if (seen.has(`${name}{${labelText}}`)) throw new Error(`sample twice: ${line}`)
    seen.add(`${name}{${labelText}}`)
    samples.push({ name, labels: parseLabels(labelText), value: Number(value.replace('Inf', 'Infinity')) })
  }
  if (!text.endsWith('\n')) throw new Error('the last line has no end')

  return {
    samples,
    types,
    value(name, labels = {}) {
      const found = samples.filter((sample) => sample.name === name && sameLabels(sample.labels, labels))
      const [sample] = found
      if (!sample || found.length > 1)
        throw new Error(`${found.length} samples of ${name} ${JSON.stringify(labels)}`)
      return sample.value
    },
  }
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {}
  for (const [, name = '', value = ''] of text.matchAll(/([a-zA-Z0-9_]+)="((?:[^"\\]|\\.)*)"/g)) {
    labels[name] = value.replace(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped))
  }
  return labels
}

function sameLabels(one: Readonly<Record<string, string>>, other: Readonly<Record<string, string>>): boolean {
  const names = Object.keys(one)
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name])
}
