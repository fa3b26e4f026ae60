import type { ErrorCode, YAMLError } from 'yaml'
import { shorten, showValue } from '../../../shared/settings/problems.ts'

/** A mistake, and the offset in the text where it begins. */
export type Blame = { readonly offset: number; readonly text: string }

export const tooDeep = 'nested too deeply'
const wrongIndent = 'not YAML: inconsistent indentation'
export const colonNeedsQuotes = 'not YAML: a value with a colon at its end or before a space needs quotes'
export const noSpace = 'not YAML: needs a space after the colon'

/**
 * Describes the parser's errors in a text: the mistakes that caused them, each with what to write, and none that only follows from
 * another.
 *
 * @param lineAt the line of an offset, from 1
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

/** Codes of errors after which the parser has lost the structure: the slip is in the line. */
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

/** The slip of the hand that a line plainly has. */
function slipIn(line: string): string | undefined {
  if (hasNoSpace(line)) return noSpace
  if (/^\s*-[a-z]\w*:/i.test(line)) return 'not YAML: needs a space after the dash'
  if (/(?<!\$)[[{](?:[^'"]*[\s,:])?\$\{/.test(line))
    return 'not YAML: a variable inside { } or [ ] needs quotes; for a number write the fields one a line'
  return undefined
}

/** Whether a line is a field without the space before its value, which is one of ASCII. */
export function hasNoSpace(line: string): boolean {
  return /^ *(?:- +)*[a-z]\w*:[^ \t\r\n]/i.test(line)
}

/** Each of these is a mistake of its own; errors after any other are mostly its consequence, as the parser has lost the structure. */
const localErrors: ReadonlySet<string> = new Set(['DUPLICATE_KEY', 'BAD_ALIAS', 'BLOCK_AS_IMPLICIT_KEY'])

/** Returns the first error on each line, up to the first that loses the structure. */
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
  const slip = structural.has(code) ? slipIn(lineOf(text, offset)) : undefined
  if (slip !== undefined) return { offset, text: slip }
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
