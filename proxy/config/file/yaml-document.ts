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
  type YAMLError,
} from 'yaml'
import { shorten, showValue } from '../../../shared/settings/problems.ts'
import { putEnvironment, type MissingVariable } from '../written/environment-values.ts'

/** Why a text is not a valid YAML mapping, and on which line, from 1. */
export type YamlMistake = { readonly line: number; readonly text: string }

/** A mapping read from YAML, with the lines of its values. */
export type YamlMapping = {
  /** Plain values; empty if there are mistakes. */
  readonly value: Readonly<Record<string, unknown>>
  readonly mistakes: readonly YamlMistake[]
  /** The line of a value; if it is missing, of the mapping that lacks it. */
  readonly lineOf: (path: readonly PropertyKey[]) => number
  /** The line of a field's name. */
  readonly lineOfName: (path: readonly PropertyKey[]) => number
}

// A valid file has four levels. The parser recurses: deep nesting makes it slow, then overflows the stack.
const maxDepth = 32
const wrongIndent = 'not YAML: inconsistent indentation'
const tooDeep = 'nested too deeply'
// An anchor used by every rule is legitimate; millions of aliases of aliases are an attack.
const maxAliasesOfAnchor = 100_000

/**
 * Reads a text that is one YAML document and a mapping; only comments is an empty mapping. Never throws.
 *
 * @param env of which values can name variables
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
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true })
  const errors = [...document.errors, ...document.warnings]
  if (errors.length > 0) {
    const isSpread = errors.some(({ code }) => code === 'MULTILINE_IMPLICIT_KEY')
    return failed(firstOfLine(errors, lineAt).map((error) => blameFor(error, text, isSpread)))
  }
  const blame = blameForAliases(document) ?? blameForPrototype(document) ?? blameForContents(document)
  if (blame) return failed([blame])
  const missing = putEnvironment(document, env)
  if (missing.length > 0) return failed(missing.map(blameForVariable))
  try {
    const value = document.toJS({ maxAliasCount: maxAliasesOfAnchor }) as Record<string, unknown> | null
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

/** A mistake, and the offset in the text where it begins. */
type Blame = { readonly offset: number; readonly text: string }

function isTooDeep(text: string): boolean {
  let brackets = 0
  let indicatorsInLine = 0
  for (const token of new Lexer().lex(text)) {
    if (token === '[' || token === '{') brackets += 1
    else if (token === ']' || token === '}') brackets -= 1
    else if (token === '-' || token === '?') indicatorsInLine += 1
    else if (token.endsWith('\n')) indicatorsInLine = 0
    if (brackets > maxDepth || indicatorsInLine > maxDepth) return true
  }
  return false
}

/** Each of these is a mistake of its own; errors after any other are mostly its consequence, as the parser has lost the structure. */
const localErrors: ReadonlySet<string> = new Set(['DUPLICATE_KEY', 'BAD_ALIAS', 'BLOCK_AS_IMPLICIT_KEY'])

/** Those up to the first that loses the structure, the first on each line. */
function firstOfLine(errors: readonly YAMLError[], lineAt: (offset: number) => number): YAMLError[] {
  const tooDeep = errors.find(({ code }) => code === 'RESOURCE_EXHAUSTION')
  if (tooDeep) return [tooDeep]
  const inOrder = errors.toSorted((a, b) => a.pos[0] - b.pos[0])
  // A mapping as a key over several lines is a line that is indented too far, or not far enough.
  const isSpread = errors.some(({ code }) => code === 'MULTILINE_IMPLICIT_KEY')
  const lost = inOrder.findIndex(
    ({ code }) => !localErrors.has(code) || (isSpread && code === 'BLOCK_AS_IMPLICIT_KEY'),
  )
  const seen = new Set<number>()
  return (lost === -1 ? inOrder : inOrder.slice(0, lost + 1)).filter(
    ({ pos: [offset] }) => !seen.has(lineAt(offset)) && seen.add(lineAt(offset)),
  )
}

/** @param isSpread whether a key spans lines, so that it is not a value without its quotes */
function blameFor({ code, message, pos: [offset] }: YAMLError, text: string, isSpread: boolean): Blame {
  if (isSpread && code === 'BLOCK_AS_IMPLICIT_KEY')
    return { offset, text: 'not YAML: the indentation of this line or of the next one is wrong' }
  if (/^(All (mapping|sequence) items|Sequence item without)/.test(message))
    return { offset, text: wrongIndent }
  switch (code) {
    case 'DUPLICATE_KEY':
      return { offset, text: `duplicate field ${showValue(/^[^\s:]*/.exec(text.slice(offset))?.[0])}` }
    case 'MULTIPLE_DOCS':
      return { offset, text: 'a second YAML document begins here, needs exactly one' }
    case 'BAD_ALIAS':
      return { offset, text: 'not YAML: a value that begins with * or & needs quotes' }
    case 'BLOCK_AS_IMPLICIT_KEY':
      return { offset, text: 'not YAML: a value with a colon at its end or before a space needs quotes' }
    case 'NON_STRING_KEY':
      return { offset, text: 'the name of a field must be text, not a list or a mapping' }
    case 'RESOURCE_EXHAUSTION':
      return { offset, text: tooDeep }
    default:
      return { offset, text: `not YAML: ${shorten(message)}` }
  }
}

/** The parser resolves aliases only when values are made, and its error then has no line. */
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

/** No mapping has this name, and the check of settings leaves it out of mappings with names of any kind, such as `plans`. */
function blameForPrototype(document: Document.Parsed): Blame | undefined {
  let blame: Blame | undefined
  visit(document, {
    Pair(_key, { key }) {
      if (!isScalar(key) || key.value !== '__proto__') return undefined
      blame = { offset: offsetOf(key) ?? 0, text: '`__proto__` cannot be used as a name' }
      return visit.BREAK
    },
  })
  return blame
}

function blameForVariable({ offset, name }: MissingVariable): Blame {
  return { offset, text: `the variable ${name} is not set: set it, or write \${${name}:-default}` }
}

function blameForContents({ contents }: Document.Parsed): Blame | undefined {
  if (contents === null || isMap(contents) || (isScalar(contents) && contents.value === null))
    return undefined
  return { offset: contents.range[0], text: 'needs fields with values, such as "port: 8080"' }
}

/** The offsets of the value at a path and of its field's name; of a missing value, those of its parent. */
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
