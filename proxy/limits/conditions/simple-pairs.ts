const separators = { cookies: ';', query: '&' } as const
/**
 * Characters that all parsers read alike: no escapes, quotes, brackets or other separators, nor anything that some decoder changes, such
 * as `j:7`, a JSON cookie.
 */
const simple = {
  cookies: /^(?:[\w.-]+=(?!j:)[\w.:/*~@!-]*(?:; ?|$))+$/,
  query: /^(?:[\w.-]+=[\w.:*~@!-]*(?:&|$))+$/,
} as const
/** Maximum length: some parsers ignore the rest of a longer text. */
const MAX_LENGTH = 2048

/**
 * Cookies, or a query, in which the usual readings are found without taking all of it apart: the readers of all that backends may find take
 * microseconds for each name. Results that hold for all names are kept.
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
   * The place of the name, spelled as in the table, at the beginning of the text or after a separator; -1 if there is none. Some backend
   * finds it there, whatever else the text has.
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

  /** Whether a simple text has the name nowhere else, in any spelling. */
  isAlone(at: number, { comparable }: WantedName): boolean {
    return this.#findAlike(comparable, 0) === at && this.#findAlike(comparable, at + comparable.length) === -1
  }

  /** Whether a simple text has the name in no spelling. */
  lacks({ comparable }: WantedName): boolean {
    return this.#findAlike(comparable, 0) === -1
  }

  #findAlike(comparable: string, from: number): number {
    this.#lower ??= this.#text.toLowerCase()
    if (!comparable.includes('_')) return this.#find(this.#lower, comparable, from)
    this.#comparable ??= withoutDots(this.#lower)
    return this.#find(this.#comparable, comparable, from)
  }

  /** Returns the place at which a name begins, or -1. */
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

/**
 * A name of letters, digits, dots, dashes and underscores, with `=` after it: as the table has it, and in lower case with `_` for a dot.
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
