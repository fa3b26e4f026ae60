import { isPair, isScalar, visit, type Document } from 'yaml'

/** Kinds of conditions on values that are always text. A claim, in contrast, can be a number or a boolean. */
const ofText: ReadonlySet<unknown> = new Set(['header', 'cookie', 'query', 'userAgent'])

/**
 * Restores the text of conditions as written in the file. YAML reads `1.10`, `0x1f`, `True` and a number of twenty digits as a number or a
 * boolean, whose text differs from the text that a client sends.
 */
export function keepWrittenTexts(document: Document): void {
  visit(document, {
    Scalar(key, node, path) {
      const { value, source } = node
      if (key === 'key' || source === undefined) return
      if (typeof value !== 'number' && typeof value !== 'boolean') return
      if (String(value) !== source && isTextOfCondition(path)) node.value = source
    },
  })
}

function isTextOfCondition(path: readonly unknown[]): boolean {
  const names = path.filter((step) => isPair(step)).map(({ key }) => (isScalar(key) ? key.value : undefined))
  const at = names.findIndex((name) => name === 'when' || name === 'unless')
  const [kind, ...within] = at === -1 ? [] : names.slice(at + 1)
  // { prefix: 1 } is a mistake.
  return ofText.has(kind) && within.length === (kind === 'userAgent' ? 0 : 1)
}
