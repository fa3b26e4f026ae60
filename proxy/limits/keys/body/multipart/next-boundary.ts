/** Where a content ends that is followed by a boundary, as an index; undefined if readers of this kind do not take the boundary for one. */
export type BoundaryReader = (text: string, start: number, end: number) => number | undefined

/** Takes any boundary for the end of a part, without the line end before it. */
export const anyBoundary: BoundaryReader = (text, start) => {
  const line = text[start - 1] === '\n' ? start - 1 : start
  return text[line - 1] === '\r' ? line - 1 : line
}

/** For Rack, a boundary must be at the end of a line. */
export const boundaryOfRack: BoundaryReader = (text, start, end) =>
  text.startsWith('\r\n', end) || text.startsWith('--\r\n', end) ? anyBoundary(text, start, end) : undefined

/** h3 drops two bytes before a boundary, whatever they are: it need not begin a line. */
export const boundaryOfH3: BoundaryReader = (_, start) => start - 2

/** Mojolicious takes no boundary for the end of a part that does not begin a line. */
export const boundaryOfMojolicious: BoundaryReader = (text, start) =>
  text.startsWith('\r\n', start - 2) ? start - 2 : undefined

/** The places of a boundary, with two hyphens before it, in a text. */
export class BoundaryPlaces {
  readonly length: number
  readonly starts: number[] = []

  constructor(text: string, boundary: string) {
    const line = `--${boundary}`
    this.length = line.length
    for (let at = text.indexOf(line); at !== -1; at = text.indexOf(line, at + 1)) this.starts.push(at)
  }

  /** Whether one begins a line with other text after it. busboy drops such a line from a head; other parsers keep it. */
  isBrokenIn(text: string): boolean {
    return this.starts.some((at) => {
      const end = at + this.length
      return text.startsWith('\r\n', at - 2) && !text.startsWith('\r\n', end) && !text.startsWith('--', end)
    })
  }
}

/** Finds the next end of a content. Queries go from left to right, so that the places are scanned once. */
export class NextBoundary {
  readonly #text: string
  readonly #places: BoundaryPlaces
  readonly #reader: BoundaryReader
  #next = 0
  #found: { readonly index: number } | undefined
  #hasEnded = false

  constructor(text: string, places: BoundaryPlaces, reader: BoundaryReader) {
    this.#text = text
    this.#places = places
    this.#reader = reader
  }

  from(start: number): { readonly index: number } | undefined {
    if (this.#hasEnded || (this.#found && this.#found.index >= start)) return this.#found
    this.#found = this.#search(start)
    this.#hasEnded = !this.#found
    return this.#found
  }

  #search(start: number): { readonly index: number } | undefined {
    const { starts, length } = this.#places
    for (let at = starts[this.#next]; at !== undefined; at = starts[++this.#next]) {
      const index = at < start ? undefined : this.#reader(this.#text, at, at + length)
      if (index !== undefined) return { index: Math.max(index, start) }
    }
    return undefined
  }
}

const words = /content-disposition/gi

/**
 * Whether a boundary or the name of a header appears only once line ends of a single character are removed, which h3 drops wherever they
 * are: `Content-\nDisposition`. No client sends such a body.
 */
export function hasBrokenWords(text: string, boundaries: ReadonlyMap<string, BoundaryPlaces>): boolean {
  const joined = withoutLoneLineEnds(text)
  if (joined.length === text.length) return false
  return (
    (joined.match(words)?.length ?? 0) > (text.match(words)?.length ?? 0) ||
    boundaries
      .entries()
      .some(([one, { starts }]) => new BoundaryPlaces(joined, one).starts.length > starts.length)
  )
}

/** Removes each CR that no LF follows, and each LF that follows no CR. Works on bytes, which takes a quarter of the time. */
function withoutLoneLineEnds(text: string): string {
  const bytes = Buffer.from(text, 'latin1')
  let end = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    const isLone = (byte === CR && bytes[at + 1] !== LF) || (byte === LF && text.charCodeAt(at - 1) !== CR)
    if (!isLone) bytes[end++] = byte
  }
  return end === bytes.length ? text : bytes.toString('latin1', 0, end)
}

const LF = 0x0a
const CR = 0x0d
