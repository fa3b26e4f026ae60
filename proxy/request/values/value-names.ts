import { decodedText } from './lenient-text.ts'

/** Whether a backend may read the sent name as the wanted one. */
export type NameTest = (sent: string) => boolean

/**
 * Compares the names of query parameters and cookies as lenient backends do: letter case is ignored (ASP.NET), escapes are decoded, blanks
 * and dots become `_` (PHP), and `user[x]`, a member of `user`, has the name `user`, as have `[user]` (qs), `]user`, `user]` and `[[user]]`
 * (Rack 2).
 *
 * @param name as written in the limits table
 */
export function nameTest(name: string): NameTest {
  const { compare, matches } = compareWith(name)
  return (sent) => compare(sent) ?? matches(sent)
}

/** Maximum names of one header or query to decode, besides names of letters, digits and their escapes. */
const MAX_DECODED = 256

/**
 * Creates the same test for all names of a header or a query, and counts the names that it has to decode.
 *
 * @param onUnread called for each further name to decode, after `MAX_DECODED` names
 */
export function countedNameTest(name: string, onUnread: () => void): NameTest {
  const { compare, matches } = compareWith(name)
  let decoded = 0
  return (sent) => {
    const isSame = compare(sent)
    if (isSame !== undefined) return isSame
    if (++decoded > MAX_DECODED) onUnread()
    return matches(sent)
  }
}

/**
 * Extends a test to names of query parameters that stand for the wanted one only in some frameworks: ASP.NET and Grails read `model.email`
 * and `model[email]` as the member `email` of a parameter `model`, whatever its name, and Spring reads `!email` if there is no `email`.
 */
export function withModelNames(matches: NameTest): NameTest {
  return (sent) => matches(sent) || (mayBeModel.test(sent) && matchesMember(sent, matches))
}

function matchesMember(sent: string, matches: NameTest): boolean {
  const name = sent.replace(defaultPrefix, '')
  if (name !== sent && matches(name)) return true
  const member = memberOfModel.exec(name)?.[1]
  return member !== undefined && matches(member)
}

const mayBeModel = /[.[%!]/
const defaultPrefix = /^(?:!|%21)/
/** A member after the first dot or bracket, but not an item of a list. */
const memberOfModel = /^(?![.[]|%2e|%5b)(?:[^.[%]|%(?!2e|5b))+(?:[.[]|%2e|%5b)(?![\d\]]|%3\d|%5d)([^]+)/i

type Comparison = {
  /** Compares without decoding; undefined if decoding is required. */
  readonly compare: (sent: string) => boolean | undefined
  /** Decodes the name, which takes up to half a microsecond. */
  readonly matches: NameTest
}

function compareWith(name: string): Comparison {
  const known = comparisons.get(name)
  if (known) return known
  const wanted = mangled(decodedText(name, false))
  // A byte never becomes more than one ASCII character.
  const shortest = /^[\0-\x7f]*$/.test(wanted) ? wanted.length : 0
  const isWanted = (text: string): boolean => text.length === wanted.length && mangled(text) === wanted
  const comparison: Comparison = {
    compare: (sent) => (sent.length < shortest ? false : compareUsual(sent, wanted)),
    matches: (sent) => {
      const text = decodedText(sent, false)
      // The first piece of a text without brackets is the text itself.
      return isWanted(text) || (bracket.test(text) && isWanted(firstPiece.exec(text)?.[1] ?? ''))
    },
  }
  // The cache has the names of the limits table, which are few.
  comparisons.set(name, comparison)
  return comparison
}

const comparisons = new Map<string, Comparison>()
const bracket = /[[\]]/
const firstPiece = /^[[\]]*([^[\]]+)/

function mangled(name: string): string {
  return name.replace(/[ .[\]]/g, '_')
}

/** Characters that every backend reads alike and none trims, in lower case, by character code. */
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

/** Whether a name is the wanted one; undefined if a character other than letters, digits and their escapes comes before a difference. */
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

/** The byte of two hexadecimal digits; NaN for other characters. */
function escapedAt(sent: string, at: number): number {
  return 16 * (hexDigit[sent.charCodeAt(at)] ?? NaN) + (hexDigit[sent.charCodeAt(at + 1)] ?? NaN)
}
