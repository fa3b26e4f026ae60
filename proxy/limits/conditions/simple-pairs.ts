const separators = { cookies: ';', query: '&' } as const
/**
 * Texts that all parsers read alike: without escapes, quotes, brackets, other separators, or values that some decoder changes, such as the
 * JSON cookie `j:7`.
 */
const simple = {
  cookies: /^(?:[\w.-]+=(?!j:)[\w.:/*~@!-]*(?:; ?|$))+$/,
  query: /^(?:[\w.-]+=[\w.:*~@!-]*(?:&|$))+$/,
} as const
/** Maximum length, because some parsers ignore the rest of a longer text. */
const MAX_LENGTH = 2048

/**
 * Finds the usual readings in cookies or a query without parsing all of the text, because the readers of all possible readings take
 * microseconds per name. Keeps results that apply to all names.
 */
export class SimplePairs {
  readonly #text: string
  readonly #kind: 'cookies' | 'query'
  readonly #separator: string
  readonly #separatorCode: number
  #isSimple: boolean | undefined
  #lower: string | undefined
  #comparable: string | undefined

  constructor(text: string, kind: 'cookies' | 'query') {
    this.#text = text
    this.#kind = kind
    this.#separator = separators[kind]
    this.#separatorCode = this.#separator.charCodeAt(0)
  }

  /** Whether every parser finds the same names and values in the text. */
  isSimple(): boolean {
    return (this.#isSimple ??= this.#text.length <= MAX_LENGTH && simple[this.#kind].test(this.#text))
  }

  /**
   * The index of the name, spelled as in the table, at the beginning of the text or after a separator; -1 if it is not found. Some backend
   * finds it there, regardless of the rest of the text.
   */
  find({ beginning }: WantedName): number {
    return this.#find(this.#text, beginning, 0)
  }

  /** The value after a name, as some backend reads it. */
  valueAt(at: number, { beginning }: WantedName): string {
    const start = at + beginning.length
    const next = this.#text.indexOf(this.#separator, start)
    return next === -1 ? this.#text.slice(start) : this.#text.slice(start, next)
  }

  /** Whether a simple text has the name only at this index, in any spelling. */
  isAlone(at: number, { comparable }: WantedName): boolean {
    if (this.#findAlike(comparable, 0) !== at || this.#hasMember(comparable)) return false
    return this.#findAlike(comparable, at + comparable.length) === -1
  }

  /** Whether a simple text does not have the name in any spelling. */
  lacks({ comparable }: WantedName): boolean {
    return this.#findAlike(comparable, 0) === -1 && !this.#hasMember(comparable)
  }

  /** Whether the name is the end of a name such as `model.user`, which ASP.NET reads as `user`. */
  #hasMember(comparable: string): boolean {
    const lower = (this.#lower ??= this.#text.toLowerCase())
    if (this.#kind === 'cookies' || !lower.includes('.')) return false
    const text = comparable.includes('_') ? (this.#comparable ??= withoutDots(lower)) : lower
    let at = text.indexOf(comparable, 1)
    while (at !== -1 && lower.charCodeAt(at - 1) !== DOT) at = text.indexOf(comparable, at + 1)
    return at !== -1
  }

  #findAlike(comparable: string, from: number): number {
    this.#lower ??= this.#text.toLowerCase()
    if (!comparable.includes('_')) return this.#find(this.#lower, comparable, from)
    this.#comparable ??= withoutDots(this.#lower)
    return this.#find(this.#comparable, comparable, from)
  }

  /** Returns the index at which a name begins, or -1. */
  #find(text: string, name: string, from: number): number {
    let at = text.indexOf(name, from)
    while (at > 0 && !this.#isSeparator(text.charCodeAt(at - 1))) at = text.indexOf(name, at + 1)
    return at
  }

  #isSeparator(code: number): boolean {
    return code === BLANK || code === this.#separatorCode
  }
}

const BLANK = 0x20
const DOT = 0x2e

/**
 * A name of letters, digits, dots, dashes and underscores, followed by `=`: as written in the table, and in lower case with `_` for each
 * dot.
 */
export type WantedName = { readonly beginning: string; readonly comparable: string }

/** Returns undefined for a name that is not simple. */
export function wantedName(name: string): WantedName | undefined {
  if (!/^[\w.-]+$/.test(name)) return undefined
  return { beginning: `${name}=`, comparable: `${withoutDots(name.toLowerCase())}=` }
}

function withoutDots(text: string): string {
  return text.includes('.') ? text.replaceAll('.', '_') : text
}
