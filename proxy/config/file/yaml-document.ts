import {
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  parseDocument,
  visit,
  type Document,
  type Scalar,
} from 'yaml'
import { shorten } from '../../../shared/settings/problems.ts'
import { keepWrittenTexts } from '../written/condition-texts.ts'
import { putEnvironment } from '../written/environment-values.ts'
import {
  beginsAsComment,
  colonNeedsQuotes,
  findMistakesOfForm,
  hasNoSpace,
  noSpace,
  tooDeep,
  wrongComment,
  type Blame,
} from './yaml-errors.ts'

/** A reason why a text is not a valid YAML mapping, and the line of the mistake, from 1. */
export type YamlMistake = { readonly line: number; readonly text: string }

/** A mapping read from YAML, with the lines of its values. */
export type YamlMapping = {
  /** Plain values; empty if there are mistakes. */
  readonly value: Readonly<Record<string, unknown>>
  readonly mistakes: readonly YamlMistake[]
  /** Returns the line of a value; for a missing value, the line of the mapping that lacks it. */
  readonly lineOf: (path: readonly PropertyKey[]) => number
  /** Returns the line of a field's name. */
  readonly lineOfName: (path: readonly PropertyKey[]) => number
}

// A valid file has four levels. The parser recurses: deep nesting makes it slow, then overflows the stack.
const MAX_DEPTH = 32
// An anchor used by every rule is legitimate; millions of aliases of aliases are an attack.
const MAX_ALIASES_OF_ANCHOR = 100_000

/**
 * Parses a text that must be one YAML document with a mapping. A text of comments alone is an empty mapping. Never throws.
 *
 * @param env the variables that values can refer to
 */
export function readYamlMapping(text: string, env: NodeJS.ProcessEnv = {}): YamlMapping {
  const lines = new LineCounter()
  const lineAt = (offset: number): number => Math.max(1, lines.linePos(offset).line)
  const failed = (blames: readonly Blame[]): YamlMapping => ({
    value: {},
    mistakes: blames.map(({ offset, text }) => ({ line: lineAt(offset), text })),
    lineOf: () => 1,
    lineOfName: () => 1,
  })
  if (isTooDeep(text)) return failed([{ offset: 0, text: tooDeep }])
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
    resolveKnownTags: false,
  })
  const mistakes = findMistakesOfForm([...document.errors, ...document.warnings], text, lineAt)
  if (mistakes.length > 0) return failed(mistakes)
  const blame = blameForAliases(document) ?? blameForNames(document) ?? blameForContents(document)
  if (blame) return failed([blame])
  const wrong = putEnvironment(document, env)
  if (wrong.length > 0) return failed(wrong)
  keepWrittenTexts(document)
  try {
    const value = document.toJS({ maxAliasCount: MAX_ALIASES_OF_ANCHOR }) as Record<string, unknown> | null
    return {
      value: value ?? {},
      mistakes: [],
      lineOf: (path) => lineAt(find(document, path).value),
      lineOfName: (path) => lineAt(find(document, path).name),
    }
  } catch {
    return failed([{ offset: 0, text: 'too many nested aliases' }])
  }
}

function isTooDeep(text: string): boolean {
  let brackets = 0
  let indicatorsInLine = 0
  for (const token of new Lexer().lex(text)) {
    if (token === '[' || token === '{') brackets += 1
    else if (token === ']' || token === '}') brackets -= 1
    else if (token === '-' || token === '?') indicatorsInLine += 1
    else if (token.endsWith('\n')) indicatorsInLine = 0
    if (brackets > MAX_DEPTH || indicatorsInLine > MAX_DEPTH) return true
  }
  return false
}

/** Finds unknown aliases. The parser resolves aliases only when it makes values, and its error then has no line. */
function blameForAliases(document: Document.Parsed): Blame | undefined {
  const anchors = new Set<string>()
  let blame: Blame | undefined
  visit(document, (_key, node) => {
    if (isAlias(node) && !anchors.has(node.source)) {
      blame = {
        offset: node.range?.[0] ?? 0,
        text: `unknown alias *${shorten(node.source)}: no anchor before it, and text that begins with * needs quotes`,
      }
      return visit.BREAK
    }
    if (isNode(node) && 'anchor' in node && node.anchor) anchors.add(node.anchor)
    return undefined
  })
  return blame
}

/** Finds the first text that cannot be the name of a field. */
function blameForNames(document: Document.Parsed): Blame | undefined {
  let blame: Blame | undefined
  visit(document, {
    Pair(_key, { key }) {
      const text = isScalar(key) ? mistakeInName(key) : undefined
      if (text === undefined) return undefined
      blame = { offset: offsetOf(key) ?? 0, text }
      return visit.BREAK
    },
  })
  return blame
}

function mistakeInName({ source, type }: Scalar): string | undefined {
  // The schema would drop it silently from mappings with arbitrary names, such as `plans`.
  if (source === '__proto__') return '`__proto__` cannot be used as a name'
  // In YAML 1.1, this name copies a mapping.
  if (source === '<<')
    return 'merge keys (<<) are not supported: write the fields, or an alias for the value of each'
  if (type === 'PLAIN' && beginsAsComment(source ?? '')) return wrongComment
  // An address such as `fd00::`.
  return type === 'PLAIN' && source?.endsWith(':') ? colonNeedsQuotes : undefined
}

function blameForContents({ contents }: Document.Parsed): Blame | undefined {
  if (contents === null || isMap(contents) || (isScalar(contents) && contents.value === null))
    return undefined
  const isSlip = isScalar(contents) && typeof contents.value === 'string' && hasNoSpace(contents.value)
  const text = isSlip ? noSpace : 'needs fields with values, such as "port: 8080"'
  return { offset: contents.range[0], text }
}

/** Returns the offsets of the value at a path and of its field's name; for a missing value, those of its parent. */
function find(document: Document.Parsed, path: readonly PropertyKey[]): { value: number; name: number } {
  let node: unknown = document.contents
  let found = { value: 0, name: 0 }
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document)
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && key.value === String(step))
      if (!pair) break
      const name = offsetOf(pair.key) ?? found.value
      found = { value: offsetOf(pair.value) ?? name, name }
      node = pair.value
    } else if (isSeq(node)) {
      node = node.items[Number(step)]
      const value = offsetOf(node) ?? found.value
      found = { value, name: value }
    } else break
  }
  return found
}

function offsetOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined
}
