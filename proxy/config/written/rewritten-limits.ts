import { readFileSync } from 'node:fs'
import { Document, isMap, isScalar, isSeq, parseDocument, Scalar, visit, type Node } from 'yaml'
import { defaultLimits } from '../rules/default-limits.ts'
import { rulesOfPresets } from '../presets.ts'

/**
 * Rewrites the limits table with other numbers of requests. Keeps its comments.
 *
 * @param limitsFile the valid settings file with the table; undefined for the built-in table
 * @param requests numbers of requests, by the names of the rules
 * @returns YAML of the field `limits` alone
 */
export function rewriteLimits(limitsFile: string | undefined, requests: ReadonlyMap<string, number>): string {
  const written =
    limitsFile === undefined
      ? new Document({ limits: defaultLimits })
      : parseDocument(readFileSync(limitsFile, 'utf8'))
  // Without a maximum of aliases: the file is valid, so an alias that every rule has is not an attack.
  const file = (written.toJS({ maxAliasCount: -1 }) ?? {}) as Record<string, unknown>
  for (const rule of file['preset'] === undefined ? [] : rulesOfPresets(file)) {
    if (!written.has('limits')) written.set('limits', written.createNode([]))
    written.addIn(['limits'], written.createNode(rule))
  }
  const rules = written.get('limits')
  separateNumbers(written, rules)
  for (const rule of isSeq(rules) ? rules.items : []) {
    const number = isMap(rule) ? requests.get(String(rule.get('name'))) : undefined
    if (isMap(rule) && number !== undefined) rule.set('requests', number)
  }
  bringAnchors(written, rules)
  // The result is meant for pasting, so it contains no other fields.
  if (isMap(written.contents)) {
    for (const name of written.contents.items.map(({ key }) => String(key)))
      if (name !== 'limits') written.delete(name)
  }
  return written.toString({ lineWidth: 0 })
}

/** Replaces aliases of a rule's number by the number, because that of the rule changes. */
function separateNumbers(written: Document, rules: unknown): void {
  if (!isSeq(rules)) return
  const numbers = new Set(rules.items.map((rule) => (isMap(rule) ? rule.get('requests', true) : undefined)))
  visit(rules, {
    Alias(_key, alias) {
      const found = alias.resolve(written)
      return isScalar(found) && numbers.has(found) ? new Scalar(found.value) : undefined
    },
  })
}

/** Replaces, for each anchor outside the rules, its first alias in the rules with the value, including the anchor. */
function bringAnchors(written: Document, rules: unknown): void {
  if (!isSeq(rules)) return
  const anchors = new Set<string>()
  visit(rules, {
    Value(_key, { anchor }) {
      if (anchor !== undefined) anchors.add(anchor)
    },
    Alias(_key, alias) {
      return anchors.has(alias.source) ? undefined : (alias.resolve(written)?.clone() as Node | undefined)
    },
  })
}
