/** A character that is neither a letter nor a digit. */
export const NOTHING = 0
/** A character that stands for several letters, which `foldedText` returns. */
export const SEVERAL = 1

/**
 * Folds a character for comparisons by letters and digits only, in any case. The counterpart of `foldedName` for one character.
 *
 * @returns the code of a letter or a digit, `NOTHING` or `SEVERAL`
 */
export function foldedCode(code: number): number {
  if (code < 0x80) return ascii[code] ?? NOTHING
  if (code >= CACHED) return codeOf(foldedText(code))
  known ??= new Uint16Array(CACHED)
  const found = known[code] ?? UNKNOWN
  if (found !== UNKNOWN) return found === KNOWN_AS_NOTHING ? NOTHING : found
  const folded = codeOf(foldedText(code))
  known[code] = folded === NOTHING ? KNOWN_AS_NOTHING : folded
  return folded
}

/** Returns the letters and digits that a character stands for, in the form in which names are compared. */
export function foldedText(code: number): string {
  const known = several.get(code)
  if (known !== undefined) return known
  const text = computeText(code)
  if (text.length > 1 && code < 0x1_0000) several.set(code, text)
  return text
}

/** Has about a hundred characters. */
const several = new Map<number, string>()

function computeText(code: number): string {
  return String.fromCodePoint(code)
    .toUpperCase()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, '')
}

/** Reduces a name to its letters and digits, each folded separately. */
export function foldedLetters(name: string): string {
  return Array.from(name, (character) => foldedText(character.codePointAt(0) ?? 0)).join('')
}

/** Characters from here on are rare, and are not cached. */
const CACHED = 0x2_0000
const UNKNOWN = 0
const KNOWN_AS_NOTHING = 2
/**
 * Folded codes by character code; created when a request first has such a character. Each character is folded once, because a body may have
 * thousands of different ones.
 */
let known: Uint16Array | undefined

const ascii: readonly number[] = Array.from({ length: 0x80 }, (_, code) => codeOf(foldedText(code)))

function codeOf(text: string): number {
  if (text === '') return NOTHING
  return text.length === 1 ? text.charCodeAt(0) : SEVERAL
}
