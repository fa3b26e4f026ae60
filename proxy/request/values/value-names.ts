import { decodedText } from './lenient-text.ts'

/** Whether a backend may read the sent name as the wanted one. */
export type NameTest = (sent: string) => boolean

/**
 * Compares the names of query parameters and cookies as lenient backends do: letter case is ignored (ASP.NET), escapes are decoded,
 * blanks and dots become `_` (PHP), and `user[x]`, a member of `user`, has the name `user`. So have `[user]` (qs), `]user`, `user]` and
 * `[[user]]` (Rack 2).
 *
 * @param name as the limits table has it
 */
export function nameTest(name: string): NameTest {
  const { compare, matches } = compareWith(name)
  return (sent) => compare(sent) ?? matches(sent)
}

/** Names of one header or query that are decoded, beside those of letters, digits and escapes of these. */
const maxDecoded = 256

/**
 * The same test for all names of a header or a query.
 *
 * @param onUnread called for each further name that has to be decoded after hundreds of them
 */
export function countedNameTest(name: string, onUnread: () => void): NameTest {
  const { compare, matches } = compareWith(name)
  let decoded = 0
  return (sent) => {
    const isSame = compare(sent)
    if (isSame !== undefined) return isSame
    if (++decoded > maxDecoded) onUnread()
    return matches(sent)
  }
}

type Comparison = {
  /** Compares without decoding; undefined if that does not tell. */
  readonly compare: (sent: string) => boolean | undefined
  /** Decodes the name, which takes up to half a microsecond. */
  readonly matches: NameTest
}

function compareWith(name: string): Comparison {
  const known = comparisons.get(name)
  if (known) return known
  const wanted = mangled(decodedText(name, false))
  // Nothing that a byte is read as becomes more than one ASCII character.
  const shortest = /^[\0-\x7f]*$/.test(wanted) ? wanted.length : 0
  const isWanted = (text: string): boolean => text.length === wanted.length && mangled(text) === wanted
  const comparison: Comparison = {
    compare: (sent) => (sent.length < shortest ? false : compareUsual(sent, wanted)),
    matches: (sent) => {
      const text = decodedText(sent, false)
      // The first piece of a text without brackets is the text.
      return isWanted(text) || (bracket.test(text) && isWanted(firstPiece.exec(text)?.[1] ?? ''))
    },
  }
  // The names of the limits table, of which there are few.
  comparisons.set(name, comparison)
  return comparison
}

const comparisons = new Map<string, Comparison>()
const bracket = /[[\]]/
const firstPiece = /^[[\]]*([^[\]]+)/

function mangled(name: string): string {
  return name.replace(/[ .[\]]/g, '_')
}

/** By character code, in lower case: the characters that every backend reads alike, of which none is trimmed. */
const usual = Array.from({ length: 0x80 }, (_, code) => {
  const character = String.fromCharCode(code)
  return /[\w.-]/.test(character) ? mangled(character.toLowerCase()).charCodeAt(0) : undefined
})
const percent = 0x25
/** By character code. */
const hexDigit = Array.from({ length: 0x67 }, (_, code) => {
  const digit = String.fromCharCode(code)
  return /[\da-f]/i.test(digit) ? Number.parseInt(digit, 16) : NaN
})

/** Whether a name is the wanted one; undefined if it has something else than letters, digits and their escapes before it differs. */
function compareUsual(sent: string, wanted: string): boolean | undefined {
  let at = 0
  let i = 0
  for (; at < sent.length; i++) {
    const isEscape = sent.charCodeAt(at) === percent
    const code = usual[isEscape ? escapedAt(sent, at + 1) : sent.charCodeAt(at)]
    if (code === undefined) return undefined
    if (i === wanted.length || code !== wanted.charCodeAt(i)) return false
    at += isEscape ? 3 : 1
  }
  return i === wanted.length
}

/** The byte of two hexadecimal digits; NaN without them. */
function escapedAt(sent: string, at: number): number {
  return 16 * (hexDigit[sent.charCodeAt(at)] ?? NaN) + (hexDigit[sent.charCodeAt(at + 1)] ?? NaN)
}
