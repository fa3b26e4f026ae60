/** Number of characters to examine one by one before calling `indexOf`, which costs as much. */
const MAX_NEAR = 16

/**
 * Finds the next occurrence of a character in a text. Queries go from left to right, so that the text is scanned once, no matter how many
 * queries ask for a distant occurrence.
 */
export class NextCharacter {
  readonly #text: string
  readonly #code: number
  readonly #character: string
  #place = -1

  constructor(text: string, code: number) {
    this.#text = text
    this.#code = code
    this.#character = String.fromCharCode(code)
  }

  /** @returns the index of the first occurrence from `start`; the length of the text if there is none */
  from(start: number): number {
    if (this.#place >= start) return this.#place
    const text = this.#text
    const near = Math.min(start + MAX_NEAR, text.length)
    for (let at = start; at < near; at++) if (text.charCodeAt(at) === this.#code) return (this.#place = at)
    const found = text.indexOf(this.#character, near)
    return (this.#place = found === -1 ? text.length : found)
  }
}
