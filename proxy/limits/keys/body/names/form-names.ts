import { foldedCode, foldedText, NOTHING, SEVERAL } from './folded-letters.ts'
import { DEAD, NameTrie, ROOT } from './name-trie.ts'

/** The rules that a form field's name may refer to. */
export type MatchedRules = readonly number[]

/**
 * Compares the names of form fields with the paths of rules, as lenient backends do: by letters and digits only, in any case. For PHP,
 * Rack, qs and Spring, `user[email]` and `user.email` are the member `email` of `user`; `email[]`, `email[x]`, `[email]` and `email.x` are
 * `email`, or a member of it; and `user[0][email]` is a member of an item.
 */
export class FormNames {
  readonly #paths: readonly (readonly string[])[]
  /** The paths of several names, each without its first name; undefined if there are none. */
  readonly #members: FormNames | undefined
  /** The paths, each as one name without separators. */
  readonly #whole: NameTrie
  /** The rules by the index of a name in `#whole`. */
  readonly #wholeRules: readonly MatchedRules[]
  readonly #first: PieceState
  readonly #states = new Map<string, PieceState>()
  // The state of the name being read.
  #wholePlace = ROOT
  #piece: PieceState
  #piecePlace = ROOT
  #isEmpty = true
  #isIndex = true
  /** Indexes of whole names that end before a bracket, a dot or a NUL: the rest of the name leads into their value. */
  readonly #wholes: number[] = []
  #wholeCount = 0

  /** @param paths the names of each path, in the form of `foldedLetters` */
  constructor(paths: readonly (readonly string[])[]) {
    this.#paths = paths
    if (paths.some(({ length }) => length > 1)) this.#members = new FormNames(paths.map(membersOf))
    const whole = paths.map((path) => path.join(''))
    const names = [...new Set(whole)]
    this.#whole = new NameTrie(names)
    this.#wholeRules = names.map((name) => whole.flatMap((one, rule) => (one === name ? [rule] : [])))
    this.#first = this.#piece = this.#stateOf(paths.map(() => 0))
  }

  /**
   * Returns the rules that the name in this range may refer to. Copies nothing, because there may be thousands of names.
   *
   * @returns undefined if the name has broken or double escapes, or non-ASCII characters; use `ofDecoded` then
   */
  ofSent(text: string, start: number, end: number): MatchedRules | undefined {
    this.#begin()
    let at = start
    for (;;) {
      at = this.#takeLetters(text, at, end)
      if (at === UNUSUAL) return undefined
      if (at >= end) return this.#end()
      this.#endPiece()
      if (this.#isDecided()) return this.#end()
      at++
    }
  }

  /**
   * Returns the rules whose value ASP.NET and Grails may find under a name, in addition to those of `ofSent`. They look for the members of
   * a parameter under its name, as in `model.email`, or without it if no field begins with it. Names of parameters and members are ASCII.
   */
  ofModel(text: string, start: number, end: number): MatchedRules {
    const members = this.#members?.ofSent(text, start, end) ?? noRules
    for (let at = start, next; at < end; at = next) {
      const code = characterAt(text, at)
      next = at + lengthAt(text, at)
      if (code !== dot && code !== openingBracket) continue
      const after = characterAt(text, next)
      // No name precedes the separator, or an item of a list follows it.
      if (at === start || isDigit(after) || after === closingBracket) break
      const others = this.ofSent(text, next, end)
      return others === undefined || others.length === 0 ? members : [...members, ...others]
    }
    return members
  }

  /** Returns the index of the last byte of the separator after the letters; `end` if the rest cannot change the result; or `UNUSUAL`. */
  #takeLetters(text: string, start: number, end: number): number {
    const whole = this.#whole
    const { trie, isOver } = this.#piece
    let wholePlace = this.#wholePlace
    let piecePlace = this.#piecePlace
    let kinds = 0
    let at = start
    for (; at < end; at++) {
      let code = text.charCodeAt(at)
      if (code === percent) {
        code = hexAt(text, at + 1) * 16 + hexAt(text, at + 2)
        if (code < 0 || code === percent) return UNUSUAL
        at += 2
      }
      if (code > 0x7f) return UNUSUAL
      const kind = kindOf[code] ?? 0
      if (kind === SEPARATOR) break
      if (kind === 0) continue
      kinds |= kind
      wholePlace = whole.stepAscii(wholePlace, code)
      piecePlace = trie.stepAscii(piecePlace, code)
      // The rest of the name cannot change the rules.
      if (wholePlace === DEAD && (isOver || (piecePlace === DEAD && (kinds & LETTER) !== 0))) at = end
    }
    this.#wholePlace = wholePlace
    this.#piecePlace = piecePlace
    this.#isEmpty = kinds === 0
    this.#isIndex = (kinds & LETTER) === 0
    return at
  }

  /** Returns the rules that a name without escapes may refer to. */
  ofDecoded(name: string): MatchedRules {
    this.#begin()
    for (const character of name) {
      const code = character.codePointAt(0) ?? 0
      if (code !== 0 && isSeparator(code)) {
        this.#endPiece()
        continue
      }
      const folded = foldedCode(code)
      if (folded === SEVERAL) for (const letter of foldedText(code)) this.#take(letter.charCodeAt(0))
      else if (folded !== NOTHING) this.#take(folded)
    }
    return this.#end()
  }

  #begin(): void {
    this.#wholePlace = this.#piecePlace = ROOT
    this.#piece = this.#first
    this.#isEmpty = this.#isIndex = true
    this.#wholeCount = 0
  }

  /** @param code the code of a folded letter or a digit */
  #take(code: number): void {
    this.#isEmpty = false
    if (!isDigit(code)) this.#isIndex = false
    if (this.#wholePlace !== DEAD) this.#wholePlace = this.#whole.step(this.#wholePlace, code)
    if (this.#piecePlace !== DEAD) this.#piecePlace = this.#piece.trie.step(this.#piecePlace, code)
  }

  #endPiece(): void {
    const whole = this.#whole.ends[this.#wholePlace]
    if (whole !== undefined && (this.#wholeCount === 0 || this.#wholes[this.#wholeCount - 1] !== whole))
      this.#wholes[this.#wholeCount++] = whole
    if (!this.#isEmpty && !this.#piece.isOver) {
      const name = this.#piecePlace === DEAD ? undefined : this.#piece.trie.ends[this.#piecePlace]
      this.#piece = this.#afterPiece(this.#piece, name, this.#isIndex)
    }
    this.#piecePlace = ROOT
    this.#isEmpty = this.#isIndex = true
  }

  /** Whether the rest of the name cannot change the rules. */
  #isDecided(): boolean {
    return this.#wholePlace === DEAD && (this.#piece.isOver || (this.#piecePlace === DEAD && !this.#isIndex))
  }

  #end(): MatchedRules {
    this.#endPiece()
    let { found } = this.#piece
    for (let i = 0; i < this.#wholeCount; i++) found = this.#withWhole(found, this.#wholes[i] ?? -1)
    return found
  }

  #withWhole(found: MatchedRules, whole: number): MatchedRules {
    const others = this.#wholeRules[whole] ?? found
    if (found.length === 0) return others
    return others.every((rule) => found.includes(rule)) ? found : [...new Set([...found, ...others])]
  }

  #afterPiece(piece: PieceState, name: number | undefined, isPlace: boolean): PieceState {
    const after = isPlace ? piece.afterPlace : piece.after
    const index = name === undefined ? 0 : name + 1
    let next = after[index]
    if (!next) {
      const sent = name === undefined ? undefined : piece.names[name]
      const levels = piece.levels.map((level, rule) => {
        const wanted = this.#paths[rule]?.[level]
        if (level === OFF || wanted === undefined) return level
        if (wanted === sent) return level + 1
        // The index of an item in an array.
        return isPlace ? level : OFF
      })
      next = this.#stateOf(levels)
      after[index] = next
    }
    return next
  }

  #stateOf(levels: readonly number[]): PieceState {
    const key = levels.join()
    const state = this.#states.get(key) ?? makeState(levels, this.#paths)
    this.#states.set(key, state)
    return state
  }
}

const noRules: MatchedRules = []

/** Returns the path without its first name; for a path of one name, a path that no name matches. */
function membersOf([, ...members]: readonly string[]): readonly string[] {
  return members.length > 0 ? members : ['\0']
}

const OFF = -1
/** Returned for a name that must be decoded first. */
const UNUSUAL = -1
const percent = 0x25
const openingBracket = 0x5b
const closingBracket = 0x5d
const dot = 0x2e

/** How far the pieces of a name match the paths of the rules. There is a state per prefix of the paths, created on demand. */
type PieceState = {
  /** The number of names matched in the path of each rule; `OFF` after a mismatch. */
  readonly levels: readonly number[]
  /** The rules whose path has ended: the rest of the name leads into their value. */
  readonly found: MatchedRules
  /** Whether no further rule can match. */
  readonly isOver: boolean
  /** The names that the next piece may match. */
  readonly names: readonly string[]
  readonly trie: NameTrie
  /** The state after each of the names, by its index from 1; at 0 the state after any other name. */
  readonly after: (PieceState | undefined)[]
  readonly afterPlace: (PieceState | undefined)[]
}

function makeState(levels: readonly number[], paths: readonly (readonly string[])[]): PieceState {
  const next = levels.map((level, rule) => (level === OFF ? undefined : paths[rule]?.[level]))
  const names = [...new Set(next.filter((name) => name !== undefined))]
  return {
    levels,
    found: levels.flatMap((level, rule) => (level === paths[rule]?.length ? [rule] : [])),
    isOver: names.length === 0,
    names,
    trie: new NameTrie(names),
    after: Array.from({ length: names.length + 1 }, () => undefined),
    afterPlace: Array.from({ length: names.length + 1 }, () => undefined),
  }
}

function isSeparator(code: number): boolean {
  // PHP ends a name at a NUL.
  return code === openingBracket || code === closingBracket || code === dot || code === 0
}

/** The kind of each ASCII character; 0 for characters that are ignored in a name. */
const DIGIT = 1
const LETTER = 2
const SEPARATOR = 4
const kindOf = Uint8Array.from({ length: 0x80 }, (_, code) => {
  if (isSeparator(code)) return SEPARATOR
  if (foldedCode(code) === NOTHING) return 0
  return isDigit(code) ? DIGIT : LETTER
})

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

/** The code of the character at an index, which browsers may have escaped: they escape brackets. Below 0 for a broken escape. */
function characterAt(text: string, at: number): number {
  const code = text.charCodeAt(at)
  return code === percent ? hexAt(text, at + 1) * 16 + hexAt(text, at + 2) : code
}

function lengthAt(text: string, at: number): 1 | 3 {
  return text.charCodeAt(at) === percent ? 3 : 1
}

/** The value of a hexadecimal digit; far below 0 for any other character. */
function hexAt(text: string, at: number): number {
  const code = text.charCodeAt(at)
  if (isDigit(code)) return code - 0x30
  const lower = code | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1000
}
