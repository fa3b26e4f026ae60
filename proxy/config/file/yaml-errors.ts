import { Lexer, type ErrorCode, type YAMLError } from 'yaml'
import { shorten, showValue } from '../../../shared/settings/problems.ts'

/** A mistake, and the offset in the text where it begins. */
export type Blame = { readonly offset: number; readonly text: string }

export const tooDeep = 'nested too deeply'
const wrongIndent = 'not YAML: inconsistent indentation'
export const colonNeedsQuotes = 'not YAML: a value with a colon at its end or before a space needs quotes'
export const noSpace = 'not YAML: needs a space after the colon'
export const wrongComment = 'not YAML: a comment begins with #, not with // or /*'

/**
 * Describes the mistakes that caused the parser's errors, each with a correction. Leaves out errors that only follow from another.
 *
 * @param lineAt returns the line of an offset, from 1
 */
export function findMistakesOfForm(
  errors: readonly YAMLError[],
  text: string,
  lineAt: (offset: number) => number,
): Blame[] {
  const carriageReturn = text.search(/\r(?!\n)/)
  if (carriageReturn !== -1)
    return [{ offset: carriageReturn, text: 'a line must end in LF or CRLF, not in CR alone' }]
  const isSpread = errors.some(({ code }) => code === 'MULTILINE_IMPLICIT_KEY')
  return firstOfLine(errors, lineAt).map((error) => blameFor(error, text, isSpread))
}

/** Codes of errors after which the parser has lost the structure. The mistake that caused them is in the same line. */
const structural: ReadonlySet<ErrorCode> = new Set([
  'BLOCK_AS_IMPLICIT_KEY',
  'MISSING_CHAR',
  'MULTILINE_IMPLICIT_KEY',
  'UNEXPECTED_TOKEN',
])

function lineOf(text: string, offset: number): string {
  const start = text.lastIndexOf('\n', offset - 1) + 1
  return text.slice(start).split('\n', 1).join()
}

/** Returns the message about an obvious typing mistake in a line. */
function slipIn(line: string): string | undefined {
  if (hasNoSpace(line)) return noSpace
  if (beginsAsComment(line.trimStart())) return wrongComment
  if (/^\s*-[a-z]\w*:/i.test(line)) return 'not YAML: needs a space after the dash'
  if (/(?<!\$)[[{](?:[^'"]*[\s,:])?\$\{/.test(line))
    return 'not YAML: a variable inside { } or [ ] needs quotes; for a number write the fields one a line'
  return undefined
}

/** Whether a text begins as comments do in JSON with comments. */
export function beginsAsComment(text: string): boolean {
  return /^\/[/*]/.test(text)
}

/** Whether a line is a field without an ASCII space before its value. */
export function hasNoSpace(line: string): boolean {
  return /^ *(?:- +)*[a-z]\w*:[^ \t\r\n]/i.test(line)
}

/**
 * Errors that are independent mistakes. After any other error, the parser has lost the structure, and further errors mostly follow from it.
 */
const localErrors: ReadonlySet<string> = new Set(['DUPLICATE_KEY', 'BAD_ALIAS', 'BLOCK_AS_IMPLICIT_KEY'])

/** Returns the first error on each line, up to the first that loses the structure. */
function firstOfLine(errors: readonly YAMLError[], lineAt: (offset: number) => number): YAMLError[] {
  const tooDeep = errors.find(({ code }) => code === 'RESOURCE_EXHAUSTION')
  if (tooDeep) return [tooDeep]
  const inOrder = errors.toSorted((a, b) => a.pos[0] - b.pos[0])
  // If a mapping spans several lines as a key, a line is indented too far or not far enough.
  const isSpread = errors.some(({ code }) => code === 'MULTILINE_IMPLICIT_KEY')
  const lost = inOrder.findIndex(
    ({ code }) => !localErrors.has(code) || (isSpread && code === 'BLOCK_AS_IMPLICIT_KEY'),
  )
  const seen = new Set<number>()
  return (lost === -1 ? inOrder : inOrder.slice(0, lost + 1)).filter(
    ({ pos: [offset] }) => !seen.has(lineAt(offset)) && seen.add(lineAt(offset)),
  )
}

/** Returns the name of the field that a text begins with, without its quotes. */
function nameAt(text: string): string | undefined {
  const [written, , quoted] = /^(["'])([^\n]*?)\1(?=\s*:)|^[^\s:]*/.exec(text) ?? []
  return quoted ?? written
}

/** @param isSpread whether a key spans several lines, which missing quotes would not explain */
function blameFor({ code, message, pos: [offset] }: YAMLError, text: string, isSpread: boolean): Blame {
  const slip = structural.has(code) ? slipIn(lineOf(text, offset)) : undefined
  if (slip !== undefined) return { offset, text: slip }
  if (isSpread && code === 'BLOCK_AS_IMPLICIT_KEY')
    return { offset, text: 'not YAML: the indentation of this line or of the next one is wrong' }
  const opened = isUnclosed(message) ? findOpened(text, offset) : undefined
  if (opened !== undefined)
    return { offset: opened, text: `not YAML: the ${text.charAt(opened)} that begins here is not closed` }
  if (/^(All (mapping|sequence) items|Sequence item without)/.test(message))
    return { offset, text: wrongIndent }
  switch (code) {
    case 'DUPLICATE_KEY':
      return { offset, text: `duplicate field ${showValue(nameAt(text.slice(offset)))}` }
    case 'MULTIPLE_DOCS':
      return { offset, text: 'a second YAML document begins here, needs exactly one' }
    case 'BAD_ALIAS':
      return { offset, text: 'not YAML: a value that begins with * or & needs quotes' }
    case 'BLOCK_AS_IMPLICIT_KEY':
      return { offset, text: colonNeedsQuotes }
    case 'NON_STRING_KEY':
      return { offset, text: 'the name of a field must be text, not a list or a mapping' }
    case 'RESOURCE_EXHAUSTION':
      return { offset, text: tooDeep }
    case 'TAG_RESOLVE_FAILED':
      return { offset, text: 'not YAML: a value that begins with ! needs quotes' }
    case 'MULTILINE_IMPLICIT_KEY':
      return { offset, text: 'not YAML: needs a field and its value, such as "port: 8080"' }
    default:
      return { offset, text: `not YAML: ${shorten(message)}` }
  }
}

function isUnclosed(message: string): boolean {
  return /^(Missing closing .quote|Flow (map|sequence) .*must .*end with)/.test(message)
}

/** Precedes the text of a scalar without quotes. The parser adds these marks to the tokens of the text. */
const SCALAR = '\x1f'
const marks: ReadonlySet<string> = new Set([SCALAR, '\x02', '\x18'])
const closing: Readonly<Record<string, string>> = { '[': ']', '{': '}' }

/** Returns the offset of the quote or the innermost bracket that is open at an offset, where the parser misses its end. */
function findOpened(text: string, end: number): number | undefined {
  const brackets: { readonly start: number; readonly closedBy: string }[] = []
  let last = ''
  let next = 0
  for (const token of new Lexer().lex(text)) {
    const start = next
    if (!marks.has(token)) next += token.length
    const isQuoted = last !== SCALAR && /^['"]/.test(token)
    last = token
    if (isQuoted && start < end && next >= end) return start
    if (start >= end) break
    const closedBy = closing[token]
    if (closedBy !== undefined) brackets.push({ start, closedBy })
    else if (token === brackets.at(-1)?.closedBy) brackets.pop()
  }
  return brackets.at(-1)?.start
}
