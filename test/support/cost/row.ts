/**
 * A reader of bytes that somebody else has written, as the measurement of what a byte costs it has it. A file of
 * `test/property/costs/` exports a list of them as `rows`, and that is all there is to do for a new one.
 *
 * An input is `wrap(content)`, and its content is one of the `units`, or one that is drawn from `atoms`, repeated. In a unit
 * `{n}` is the number of the repetition: names that are all different.
 */
export type CostRow = {
  /** The input. */
  readonly name: string
  /**
   * The most bytes of one input: longer input is refused, or passed on in parts. Of more than that no reader keeps anything,
   * however much it is given.
   */
  readonly largestBytes: number
  /** What the worst inputs that are known are made of, one character a byte. */
  readonly units: readonly string[]
  /** Pieces of the grammar, from which more units are drawn. */
  readonly atoms: readonly string[]
  /** @returns the input, one character a byte where it is a text */
  readonly wrap: (content: string) => string | Buffer
  /** Something that reads one input. */
  readonly open: () => ByteReader
  /** It gets each input in one piece, because something else has read it before. */
  readonly onlyWhole?: boolean
  /** What it throws for an input that it refuses. What else is thrown fails the measurement. */
  readonly refusals?: readonly (new (...args: never[]) => Error)[]
  /** Milliseconds of CPU that an input may cost, where less than the usual bound holds. */
  readonly maxMs?: number
  /** Bytes that it may keep beyond 40 for each byte, where that is what it is there for. */
  readonly keptBytes?: number
}

/** What it has read and keeps hangs on this object. */
export type ByteReader = {
  /** Takes the next bytes, which nobody writes to any more. */
  take(piece: Buffer): void
  /** How many pieces of a body it has passed on so far: each costs an event and a write, however short it is. */
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
