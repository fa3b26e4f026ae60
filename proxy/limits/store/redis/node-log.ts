import type { Log } from '../../../../shared/log.ts'

/** Lines about further nodes are collected for so long. */
const COLLECT_MS = 1000

type Level = 'info' | 'warn'

/** Of a line; the node is empty, or undefined, where Redis has no nodes. */
type NodeLine = { readonly node: string | undefined; readonly fields: Readonly<Record<string, unknown>> }

/** Further lines of a message. */
type Collected = { readonly level: Level; readonly lines: NodeLine[]; readonly timer: NodeJS.Timeout }

/**
 * The log of what happens to nodes of a cluster: where it happens to many at once, one line for the first of them, and one with the number
 * of the others. Lines of different messages stay in order, so that the last line about a node says how it is.
 */
export class NodeLog {
  readonly #log: Log
  /** By message. */
  readonly #collected = new Map<string, Collected>()

  constructor(log: Log) {
    this.#log = log
  }

  /** @param fields of the line besides the node */
  tell(level: Level, message: string, { node, fields }: NodeLine): void {
    if (!node) {
      this.#log[level](fields, message)
      return
    }
    const collected = this.#collected.get(message)
    if (collected) {
      collected.lines.push({ node, fields })
      return
    }
    this.flush()
    this.#log[level]({ ...fields, node }, message)
    const timer = setTimeout(() => this.#write(message), COLLECT_MS).unref()
    this.#collected.set(message, { level, lines: [], timer })
  }

  /** Writes the lines that are collected, and ends the timers. */
  flush(): void {
    for (const message of [...this.#collected.keys()]) this.#write(message)
  }

  #write(message: string): void {
    const collected = this.#collected.get(message)
    this.#collected.delete(message)
    clearTimeout(collected?.timer)
    const { level = 'info', lines = [] } = collected ?? {}
    const [first] = lines
    if (!first) return
    const nodes = new Set(lines.map(({ node }) => node))
    if (nodes.size === 1) this.#log[level]({ ...first.fields, node: first.node }, message)
    else this.#log[level]({ ...first.fields, node: first.node, otherNodes: nodes.size - 1 }, message)
  }
}
