const tab = 0x09
const carriageReturn = 0x0d
const space = 0x20
const exclamationMark = 0x21
const doubleQuote = 0x22
const singleQuote = 0x27
const openingParenthesis = 0x28
const closingParenthesis = 0x29
const hyphen = 0x2d
const lessThan = 0x3c
const greaterThan = 0x3e
const questionMark = 0x3f
const backslash = 0x5c
const lowerE = 0x65
const lowerL = 0x6c

/**
 * Removes the texts that WordPress treats as tags (`wp_strip_all_tags`): scripts and styles with their content, and then the texts that
 * PHP's `strip_tags` removes, which differ from HTML's tags. Reads each character a few times.
 *
 * @param text one character per byte
 */
export function withoutTags(text: string): string {
  if (!text.includes('<')) return text.replaceAll('\0', '')
  return new TagStripper(withoutScripts(text)).strip()
}

/** Removes the matches of `/<(script|style)[^>]*?>.*?<\/\1>/gis`. The expression itself takes quadratic time for unclosed scripts. */
function withoutScripts(text: string): string {
  const lower = text.toLowerCase()
  const opening = /<(script|style)/g
  const endless = new Set<string>()
  let kept = ''
  let start = 0
  for (let found = opening.exec(lower); found; found = opening.exec(lower)) {
    const { index, 1: name = '' } = found
    if (endless.has(name)) continue
    const tagEnd = lower.indexOf('>', index)
    const closing = tagEnd === -1 ? -1 : lower.indexOf(`</${name}>`, tagEnd)
    if (closing === -1) {
      endless.add(name)
      continue
    }
    kept += text.slice(start, index)
    start = closing + name.length + 3
    opening.lastIndex = start
  }
  return kept + text.slice(start)
}

/** The state of `strip_tags`: `code` after `<?`, a `declaration` after `<!`. */
type State = 'text' | 'tag' | 'code' | 'declaration' | 'comment'

const none = 0

/** Implements PHP's `strip_tags`, including its odd rules: some state survives from one tag to the next. */
class TagStripper {
  readonly #text: string
  readonly #lower: string
  #at = 0
  /** The open quote, or `none`. */
  #quote = none
  /** The quote that was read last in code, unless it was closed. */
  #lastQuote = none
  /** The nesting depth of `<` in a tag. */
  #depth = 0
  /** The nesting depth of parentheses in code, which may be negative. */
  #parentheses = 0
  #isXml = false

  constructor(text: string) {
    this.#text = text
    this.#lower = text.toLowerCase()
  }

  strip(): string {
    const kept = Buffer.allocUnsafe(this.#text.length)
    let length = 0
    let state: State = 'text'
    for (; this.#at < this.#text.length; this.#at++) {
      const code = this.#text.charCodeAt(this.#at)
      if (state === 'text') {
        state = this.#opensTag(code) ? 'tag' : 'text'
        if (state === 'text' && !this.#isDropped(code)) kept[length++] = code
      } else state = this.#next(state, code)
    }
    return kept.toString('latin1', 0, length)
  }

  /** Whether a character is a `<` that opens a tag. Before a blank, it is text. */
  #opensTag(code: number): boolean {
    if (code !== lessThan || this.#isBlankNext()) return false
    this.#lastQuote = none
    return true
  }

  /** Whether a character of text is dropped: a NUL, or a `>` left over from the tags before a comment. */
  #isDropped(code: number): boolean {
    return code === 0 || (code === greaterThan && !this.#isOutside())
  }

  #next(state: Exclude<State, 'text'>, code: number): State {
    switch (state) {
      case 'tag':
        return this.#inTag(code)
      case 'code':
        return this.#inCode(code)
      case 'declaration':
        return this.#inDeclaration(code)
      case 'comment':
        return code === greaterThan && this.#quote === none && this.#isAfter('--') ? this.#end() : state
    }
  }

  #inTag(code: number): State {
    switch (code) {
      case lessThan:
        if (this.#quote === none && !this.#isBlankNext()) this.#depth++
        return 'tag'
      case greaterThan:
        if (!this.#isOutside()) return 'tag'
        this.#lastQuote = none
        if (this.#isXml && this.#isAfter('-')) return 'tag'
        this.#isXml = false
        return this.#end()
      case doubleQuote:
      case singleQuote:
        this.#readQuote(code)
        return 'tag'
      case exclamationMark:
        if (!this.#isAfter('<')) return 'tag'
        this.#lastQuote = none
        return 'declaration'
      case questionMark:
        if (!this.#isAfter('<')) return 'tag'
        this.#parentheses = 0
        return 'code'
      default:
        return 'tag'
    }
  }

  #inCode(code: number): State {
    switch (code) {
      case openingParenthesis:
      case closingParenthesis:
        if (this.#lastQuote === none) this.#parentheses += code === openingParenthesis ? 1 : -1
        return 'code'
      case greaterThan: {
        const isEnd = this.#isOutside() && this.#parentheses === 0 && this.#lastQuote !== doubleQuote
        return isEnd && this.#isAfter('?') ? this.#end() : 'code'
      }
      case doubleQuote:
      case singleQuote:
        if (this.#text.charCodeAt(this.#at - 1) === backslash) return 'code'
        this.#lastQuote = this.#lastQuote === code ? none : code
        this.#readQuote(code)
        return 'code'
      default:
        // At the beginning of the text, PHP treats `<?xml` as code.
        if ((code | 0x20) !== lowerL || this.#at <= 4 || !this.#isAfter('<?xm')) return 'code'
        this.#isXml = true
        return 'tag'
    }
  }

  #inDeclaration(code: number): State {
    switch (code) {
      case greaterThan:
        return this.#isOutside() ? this.#end() : 'declaration'
      case doubleQuote:
      case singleQuote:
        if (this.#text.charCodeAt(this.#at - 1) !== backslash) this.#readQuote(code)
        return 'declaration'
      case hyphen:
        return this.#isAfter('!-') ? 'comment' : 'declaration'
      default:
        return (code | 0x20) === lowerE && this.#isAfter('doctyp') ? 'tag' : 'declaration'
    }
  }

  /** Whether a `>` is neither in quotes nor the end of a tag inside another one. */
  #isOutside(): boolean {
    if (this.#depth === 0) return this.#quote === none
    this.#depth--
    return false
  }

  #readQuote(code: number): void {
    if (this.#quote === none) this.#quote = code
    else if (this.#quote === code) this.#quote = none
  }

  #end(): State {
    this.#quote = none
    return 'text'
  }

  #isBlankNext(): boolean {
    const next = this.#text.charCodeAt(this.#at + 1)
    return next === space || (next >= tab && next <= carriageReturn)
  }

  /** @param before in lower case */
  #isAfter(before: string): boolean {
    return this.#lower.startsWith(before, this.#at - before.length)
  }
}
