/**
 * A reader of untrusted bytes, described for the measurement of what each byte costs. Each file of `test/property/costs/` exports a list of
 * them as `rows`; to measure a new reader, add it to such a list.
 *
 * An input is `wrap(content)`. Its content repeats one unit: one of `units`, or one that is drawn from `atoms`. In a unit, `{n}` stands for
 * the number of the repetition, so that names are all different.
 */
export type CostRow = {
  /** Names the input. */
  readonly name: string
  /**
   * The maximum size of one input. Longer input is refused, or passed on in parts. No reader keeps anything beyond this size, no matter
   * how much it is given.
   */
  readonly largestBytes: number
  /** The units of the worst known inputs, one character a byte. */
  readonly units: readonly string[]
  /** Pieces of the grammar, from which more units are drawn. */
  readonly atoms: readonly string[]
  /** @returns the input, one character a byte if it is a string */
  readonly wrap: (content: string) => string | Buffer
  /** Something that reads one input. */
  readonly open: () => ByteReader
  /** The reader gets each input in one piece, because something else has read it before. */
  readonly onlyWhole?: boolean
  /** The errors that the reader throws for an input that it refuses. Any other error fails the measurement. */
  readonly refusals?: readonly (new (...args: never[]) => Error)[]
  /** Milliseconds of CPU that an input may cost, if the bound is lower than usual. */
  readonly maxMs?: number
  /** Bytes that the reader may keep beyond 40 for each byte, if keeping them is its purpose. */
  readonly keptBytes?: number
}

/** Holds everything that the reader keeps. */
export type ByteReader = {
  /** Takes the next bytes, which do not change afterwards. */
  take(piece: Buffer): void
  /** How many pieces of a body it has passed on so far: each costs an event and a write, no matter how short it is. */
  readonly passedOn?: number
}

/** A reader that is given one text, of one character a byte. */
export function openText(read: (text: string) => unknown): () => ByteReader {
  return () => ({
    take(piece) {
      Object.assign(this, { kept: read(piece.toString('latin1')) })
    },
  })
}
