import { foldedName, isNamed } from '../../request/json/json-names.ts'

// Not imported: V8 reads an imported constant anew at each use, which makes a loop over bytes up to 40 % slower.
const space = 0x20
const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const openingBracket = 0x5b
const backslash = 0x5c
const closingBracket = 0x5d
const openingBrace = 0x7b
const closingBrace = 0x7d

/** The result of looking up a path of member names in a JSON text. */
export type Found =
  | { readonly kind: 'value'; readonly value: unknown }
  /** A name of the path appears twice in one object. Parsers differ in which one they use. */
  | { readonly kind: 'repeated' }
  /** A value along the path is neither an object nor null, or the text has too many unusual names to find the member. */
  | { readonly kind: 'no-object' }
  | { readonly kind: 'absent' }

/**
 * Finds a value in the way that a backend in any language could: compares names by their letters and digits only, in any case, as Go's
 * encoding/json and the JSON mapping of Protocol Buffers do. Always takes a single pass over the text.
 *
 * @param text must be accepted by `JSON.parse`
 * @param path member names, one or more
 */
export function findMember(text: string, path: readonly string[]): Found {
  const names = path.map(foldedName)
  /** Levels at which the member of the path has been found. */
  const met = new Set<number>()
  let depth = 0
  /** The number of open objects, from the outermost, that are on the path. */
  let onPath = 0
  /** Whether the next value belongs to a member of the path, or is the whole text. */
  let expects = true
  let unusual = 0
  let found: Found | undefined
  let faulty: Found | undefined

  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code <= space || code === comma || code === colon) continue
    if (code === closingBrace || code === closingBracket) {
      depth--
      onPath = Math.min(onPath, depth)
      continue
    }
    const end = code === quote ? endOfString(text, at) : at + 1
    if (!expects && code === quote && onPath === depth && isName(text, end)) {
      const name = names[depth - 1] ?? ''
      const isSame = isNamed(text, at + 1, end - 1, name)
      if (isSame === undefined && ++unusual > MAX_UNUSUAL_NAMES) return { kind: 'no-object' }
      expects = isSame ?? foldedName(JSON.parse(text.slice(at, end)) as string) === name
      if (expects && met.has(depth)) faulty ??= { kind: 'repeated' }
      if (expects) met.add(depth)
      at = end - 1
      continue
    }
    const isObject = code === openingBrace
    if (expects && depth === names.length) found ??= { kind: 'value', value: valueAt(text, at) }
    else if (expects && isObject) onPath = depth + 1
    else if (expects && code !== firstOfNull) faulty ??= { kind: 'no-object' }
    if (isObject || code === openingBracket) depth++
    // Skips the rest of a number or a word.
    at = expects && !isObject && code !== openingBracket ? endOfToken(text, end) - 1 : end - 1
    expects = false
  }
  return faulty ?? found ?? { kind: 'absent' }
}

/** Maximum names with escapes or non-ASCII characters to compare. Each takes a hundred times as long as other names. */
const MAX_UNUSUAL_NAMES = 64

const firstOfNull = 0x6e

/** The index after a string. */
function endOfString(text: string, start: number): number {
  let at = start + 1
  while (text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1
  return at + 1
}

/** The index after a number or a word, or after the string that ends here. */
function endOfToken(text: string, start: number): number {
  let at = start
  while (at < text.length && !endsToken.has(text.charCodeAt(at))) at++
  return at
}

const endsToken = new Set([0x09, 0x0a, 0x0d, space, comma, closingBracket, closingBrace])

/** Whether the string that ends here is the name of a member. */
function isName(text: string, end: number): boolean {
  let at = end
  while (text.charCodeAt(at) <= space) at++
  return text.charCodeAt(at) === colon
}

/** The value; `{}` for an array and `''` for a string, because callers only need to know that these are not numbers. */
function valueAt(text: string, start: number): unknown {
  const code = text.charCodeAt(start)
  if (code === openingBrace || code === openingBracket) return {}
  return code === quote ? '' : JSON.parse(text.slice(start, endOfToken(text, start)))
}
