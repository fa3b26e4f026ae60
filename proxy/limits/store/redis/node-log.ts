import type { Log } from '../../../../shared/log.ts'

/** How long events of further nodes are collected before one line reports them. */
const COLLECT_MS = 1000

type Level = 'info' | 'warn'

/** The fields of a line; the node is empty, or undefined, if Redis is not a cluster. */
type NodeLine = { readonly node: string | undefined; readonly fields: Readonly<Record<string, unknown>> }

type Line = {
  readonly level: Level
  readonly message: string
  readonly node: string
  readonly fields: NodeLine['fields']
}

/**
 * Logs events of a cluster's nodes. If an event happens to many nodes within a second, one line reports the first node and further lines
 * report the number of the others, no matter how often the event happens to each. The last line about a node reports its current state.
 */
export class NodeLog {
  readonly #log: Log
  /** Messages that were logged in this second. */
  readonly #logged = new Set<string>()
  #collected: Line[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(log: Log) {
    this.#log = log
  }

  /** @param fields of the line besides the node */
  write(level: Level, message: string, { node, fields }: NodeLine): void {
    if (!node) {
      this.#log[level](fields, message)
      return
    }
    if (this.#logged.has(message)) {
      this.#collected.push({ level, message, node, fields })
      return
    }
    this.#writeCollected()
    this.#logged.add(message)
    this.#log[level]({ ...fields, node }, message)
    this.#timer ??= setTimeout(() => this.flush(), COLLECT_MS).unref()
  }

  /** Writes the collected lines, and stops the timer. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#logged.clear()
    this.#writeCollected()
  }

  #writeCollected(): void {
    const lines = this.#collected
    this.#collected = []
    const last = new Map(lines.map((line) => [line.node, line.message]))
    const isLast = ({ node, message }: Line): boolean => last.get(node) === message
    this.#writeOnePerMessage(lines.filter((line) => !isLast(line)))
    this.#writeOnePerMessage(lines.filter(isLast))
  }

  #writeOnePerMessage(lines: readonly Line[]): void {
    for (const [message, of] of Map.groupBy(lines, (line) => line.message)) {
      const [first] = of
      if (!first) continue
      const otherNodes = new Set(of.map(({ node }) => node)).size - 1
      this.#log[first.level](
        { ...first.fields, node: first.node, ...(otherNodes > 0 && { otherNodes }) },
        message,
      )
    }
  }
}
