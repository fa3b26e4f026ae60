import { isPair, isScalar, visit, type Document } from 'yaml'

/** Kinds of conditions on what a client sends, which is text. A claim of a token is a number or a boolean where the token has one. */
const ofText: ReadonlySet<unknown> = new Set(['header', 'cookie', 'query', 'userAgent'])

/**
 * Gives conditions the text that the file has: `1.10`, `0x1f`, `True` and a number of twenty digits are written otherwise once YAML has
 * read them as a number or a boolean, and no client would send that.
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
