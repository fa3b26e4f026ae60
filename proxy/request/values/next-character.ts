/** Characters that are looked at one by one: to call `indexOf` costs as much as that. */
const MAX_NEAR = 16

/**
 * The places of a character in a text, asked for from left to right: the text is looked through once, however many ask for a place that is
 * far away.
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

  /** @returns the first place from there; the end of the text where there is none */
  from(start: number): number {
    if (this.#place >= start) return this.#place
    const text = this.#text
    const near = Math.min(start + MAX_NEAR, text.length)
    for (let at = start; at < near; at++) if (text.charCodeAt(at) === this.#code) return (this.#place = at)
    const found = text.indexOf(this.#character, near)
    return (this.#place = found === -1 ? text.length : found)
  }
}
