/** The lists in the response. */
export type StreamList = 'new' | 'deleted'

/** CrowdSec's longest decisions have a few hundred characters. */
const MAX_DECISION_LENGTH = 16_384

/**
 * Reads `{"new": [{…}, …], "deleted": [{…}, …]}` as it arrives, decision by decision. A community list has a hundred thousand decisions;
 * parsing all at once would block the process for a second. A list may be null.
 */
export class StreamReader {
  readonly #onDecision: (list: StreamList, decision: unknown) => void
  #depth = 0
  #isInString = false
  #isEscaped = false
  /** The text of the current decision or name, so far. */
  #text = ''
  #name = ''
  /** The next non-blank character begins the value of `new` or `deleted`. */
  #isListNext = false
  #hasList = false
  #isOver = false

  constructor(onDecision: (list: StreamList, decision: unknown) => void) {
    this.#onDecision = onDecision
  }

  /** @throws Error if the text is not such an object */
  write(piece: string): void {
    for (let at = 0; at < piece.length; at++) {
      const character = piece.charAt(at)
      const isKept = this.#depth >= 3 || (this.#depth === 1 && this.#isInString)
      if (isKept) this.#keep(character)
      if (this.#isInString) this.#inString(character)
      else this.#outside(character)
    }
  }

  /** @throws Error if the object is truncated */
  end(): void {
    if (!this.#isOver || !this.#hasList) throw new Error('the answer is truncated, or has no decisions')
  }

  #keep(character: string): void {
    if (this.#text.length >= MAX_DECISION_LENGTH) throw new Error('a decision is too long')
    this.#text += character
  }

  #inString(character: string): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (character === '\\') this.#isEscaped = true
    else if (character === '"') {
      this.#isInString = false
      if (this.#depth !== 1) return
      this.#name = this.#text.slice(0, -1)
    }
  }

  #outside(character: string): void {
    if (this.#isListNext && !isBlank(character)) this.#beginList(character)
    switch (character) {
      case ':':
        this.#isListNext = this.#depth === 1 && (this.#name === 'new' || this.#name === 'deleted')
        return
      case '"':
        this.#isInString = true
        if (this.#depth === 1) this.#text = ''
        return
      case '{':
      case '[':
        this.#depth++
        if (this.#depth === 3) this.#text = character
        if (this.#depth === 1 && character === '[') throw new Error('the answer is not an object')
        return
      case '}':
      case ']':
        this.#depth--
        if (this.#depth === 2) this.#found()
        if (this.#depth === 0) this.#isOver = true
    }
  }

  #beginList(character: string): void {
    // A list, or null.
    if (character !== '[' && character !== 'n') throw new Error(`${this.#name} in the answer is not a list`)
    this.#isListNext = false
    this.#hasList = true
  }

  #found(): void {
    const decision: unknown = JSON.parse(this.#text)
    this.#text = ''
    if (this.#name === 'new' || this.#name === 'deleted') this.#onDecision(this.#name, decision)
  }
}

function isBlank(character: string): boolean {
  return character === ' ' || character === '\n' || character === '\r' || character === '\t'
}
