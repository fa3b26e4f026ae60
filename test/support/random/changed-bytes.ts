import fc from 'fast-check'

// Changes of HTTP messages, which are Latin-1 text, one character a byte. A change may make a message malformed.

const byte = fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code))
export const content = fc.string({ unit: byte, maxLength: 40 })
export const blanks = fc.constantFrom('', ' ', '\t', ' \t ')

const lineEnds = ['\n', '\r', '\r\r\n', '\n\r', '\r\n\r\n', '\r\n ', '\r\n\t', '', ' \r\n']
const characters = ['\0', '\t', '\n', '\v', '\r', ' ', ':', ';', ',', '"', '0', 'a', '\x7f', '\x80', '\xff']

/** Parts of messages, many of them malformed: header lines, and sizes and extensions of chunks. */
export type Parts = {
  readonly lines: readonly string[]
  readonly sizes: readonly string[]
  readonly extensions: readonly string[]
}

/** @param at chooses the place of the change */
export type Change = (bytes: string, at: number) => string

/** Changes one of the places that a pattern finds. */
export function replacing(pattern: RegExp, change: (found: string) => string): Change {
  return (bytes, at) => {
    const found = [...bytes.matchAll(pattern)]
    const one = found[at % Math.max(1, found.length)]
    if (!one) return bytes
    return bytes.slice(0, one.index) + change(one[0]) + bytes.slice(one.index + one[0].length)
  }
}

/** The changes that may be made to a request and to a response. */
export function changesOfMessages({ lines, sizes, extensions }: Parts): fc.Arbitrary<Change>[] {
  return [
    fc
      .integer({ min: 1, max: 255 })
      .map((bits) => replacing(/[^]/g, (found) => String.fromCharCode(found.charCodeAt(0) ^ bits))),
    fc.constantFrom(...characters).map((added) => replacing(/[^]/g, (found) => added + found)),
    fc.integer({ min: 1, max: 6 }).map((size): Change => (bytes, at) => {
      const start = at % (bytes.length + 1)
      return bytes.slice(0, start) + bytes.slice(start + size)
    }),
    fc.constant(replacing(/[^\n]*\n/g, (line) => line + line)),
    fc.constantFrom(...lines).map((line) => replacing(/\r\n/g, (found) => `${found}${line}\r\n`)),
    fc.constantFrom(...lineEnds).map((end) => replacing(/\r\n/g, () => end)),
    blanks.map((blank) => replacing(/:/g, (colon) => blank + colon)),
    fc.constantFrom(...sizes).map((size) => replacing(/(?<=\r\n)[0-9a-fA-F]+(?=[;\r])/g, () => size)),
    fc
      .constantFrom(...extensions)
      .map((added) => replacing(/(?<=\r\n)[0-9a-fA-F]+(?=[;\r])/g, (size) => size + added)),
  ]
}

/** One to three changes, made one after the other. */
export function oneToThree(changes: fc.Arbitrary<Change>): fc.Arbitrary<(bytes: string) => string> {
  return fc
    .array(fc.tuple(changes, fc.nat(10_000)), { minLength: 1, maxLength: 3 })
    .map((made) => (sent) => made.reduce((bytes, [change, at]) => change(bytes, at), sent))
}

/** Arbitrary bytes after one of the starts. */
export function bytesAfter(
  starts: readonly string[],
  { lines, sizes, extensions }: Parts,
): fc.Arbitrary<string> {
  const piece = fc.oneof(
    byte,
    fc.constantFrom('\r\n', '\r\n', '\r\n\r\n', ...characters),
    fc.constantFrom(...lines, ...sizes, ...extensions),
  )
  return fc
    .tuple(fc.constantFrom(...starts), fc.array(piece, { maxLength: 30 }))
    .map(([start, rest]) => start + rest.join(''))
}
