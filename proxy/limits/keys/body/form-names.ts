import { foldedName } from '../../../request/json/json-names.ts'

/**
 * Compares the names of form fields with the path of a rule, as lenient backends do: by letters and digits only, in any case.
 * `user[email]` and `user.email` are the member `email` of `user` to PHP, Rack, qs and Spring; `email[]`, `email[x]`, `[email]` and
 * `email.x` are `email`, or something in it; and `user[0][email]` is the member of an item.
 */
export class FormName {
  readonly #names: readonly string[]
  readonly #whole: string
  /** Letters of `#whole` that have been met; `OFF` once there was another. */
  #met = 0
  /** Names of the path that pieces have been equal to; `OFF` once a piece was equal to none. */
  #pieces = 0
  #metOfPiece = 0
  #isEmpty = true
  #isIndex = true

  /** @param path as the limits table has it */
  constructor(path: readonly string[]) {
    this.#names = path.map(foldedName)
    this.#whole = this.#names.join('')
  }

  /**
   * Whether the name that stands there may be meant. Nothing is copied, as there may be thousands.
   *
   * @returns undefined where it has broken or double escapes, or characters beyond ASCII: `isDecoded` tells then
   */
  isSent(text: string, start: number, end: number): boolean | undefined {
    this.#begin()
    for (let at = start; at < end; at++) {
      let code = text.charCodeAt(at)
      if (code === percent) {
        code = hexAt(text, at + 1) * 16 + hexAt(text, at + 2)
        if (code < 0 || code === percent) return undefined
        at += 2
      }
      if (code > 0x7f) return undefined
      if (isSeparator(code)) this.#endPiece()
      else if (isLetter[code]) this.#take(code | 0x20)
      else if (isDigit(code)) this.#take(code)
    }
    return this.#end()
  }

  /** The same for a name without escapes. */
  isDecoded(name: string): boolean {
    this.#begin()
    for (const [at, piece] of name.split(/[[\].]/).entries()) {
      if (at > 0) this.#endPiece()
      const letters = foldedName(piece)
      for (let i = 0; i < letters.length; i++) this.#take(letters.charCodeAt(i))
    }
    return this.#end()
  }

  #begin(): void {
    this.#met = this.#pieces = this.#metOfPiece = 0
    this.#isEmpty = this.#isIndex = true
  }

  /** @param code of a letter in lower case, or of a digit */
  #take(code: number): void {
    this.#isEmpty = false
    if (!isDigit(code)) this.#isIndex = false
    if (this.#met !== OFF) this.#met = this.#whole.charCodeAt(this.#met) === code ? this.#met + 1 : OFF
    if (this.#metOfPiece === OFF) return
    const name = this.#names[this.#pieces] ?? ''
    this.#metOfPiece = name.charCodeAt(this.#metOfPiece) === code ? this.#metOfPiece + 1 : OFF
  }

  #endPiece(): void {
    const name = this.#names[this.#pieces]
    if (name !== undefined && !this.#isEmpty) {
      if (this.#metOfPiece === name.length) this.#pieces++
      // The place of an item in an array.
      else if (!this.#isIndex) this.#pieces = OFF
    }
    this.#metOfPiece = 0
    this.#isEmpty = this.#isIndex = true
  }

  #end(): boolean {
    this.#endPiece()
    return this.#pieces === this.#names.length || this.#met === this.#whole.length
  }
}

const OFF = -1
const percent = 0x25
const openingBracket = 0x5b
const closingBracket = 0x5d
const dot = 0x2e

function isSeparator(code: number): boolean {
  // To PHP a name ends at a NUL.
  return code === openingBracket || code === closingBracket || code === dot || code === 0
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

/** By code. */
const isLetter: readonly boolean[] = Array.from({ length: 128 }, (_, code) =>
  /[A-Za-z]/.test(String.fromCharCode(code)),
)

/** A hexadecimal digit; far below 0 for any other character. */
function hexAt(text: string, at: number): number {
  const code = text.charCodeAt(at)
  if (isDigit(code)) return code - 0x30
  const lower = code | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1000
}
