/** Of what is escaped twice a backend that unescapes twice reads the same; nobody does more. */
const mostRounds = 4
const plain = /^[a-z0-9_.~-]*$/

/**
 * Reads a value of a query or a cookie as the most lenient backend does, so that two spellings that some backend takes for
 * one value come out as one: escapes decoded (`%41`, `%u0041`), `+` as a space, letter case folded, blanks around it
 * dropped. It is text to compare, never to forward. Two values that a strict backend tells apart may come out as one, such
 * as `a+b` and `a b`.
 *
 * Each step is repeated until nothing changes. So whichever of them a backend takes, and in whatever order, what it reads
 * comes out as what it was sent does.
 *
 * @param sent a character for each byte
 * @param isQuoted of a cookie, whose value may be quoted: `"a"`, with `\"` and `\101` in it
 */
export function lenientText(sent: string, isQuoted: boolean): string {
  if (plain.test(sent)) return sent
  let bytes = sent
  for (let round = 0; round < mostRounds; round++) {
    const decoded = decodeOnce(bytes, isQuoted)
    if (decoded === bytes) break
    bytes = decoded
  }
  const nul = bytes.indexOf('\0')
  if (nul !== -1) bytes = bytes.slice(0, nul)
  // Bytes that are no UTF-8 are one character to some backends, and several to others.
  const text = Buffer.from(bytes, 'latin1')
    .toString()
    .replace(/\uFFFD+/g, '\uFFFD')
  // Upper case first, as for paths: it is what turns `ſ` and `ı` into the letters that they are taken for.
  return text.toUpperCase().toLowerCase().replaceAll('i\u0307', 'i').trim()
}

/**
 * The name of a query parameter or a cookie as lenient backends compare it: letter case is ignored (ASP.NET), and PHP reads
 * blanks, dots and brackets as `_`.
 *
 * @returns twice the same, mostly: of `a[b]`, which is a member of `a`, as the name of the whole and of `a`
 */
export function lenientNames(sent: string): readonly [string, string] {
  const name = lenientText(sent, false)
  const bracket = name.indexOf('[')
  const whole = mangled(name)
  return [whole, bracket === -1 ? whole : mangled(name.slice(0, bracket))]
}

function mangled(name: string): string {
  return name.replace(/[ .[\]]/g, '_')
}

function decodeOnce(bytes: string, isQuoted: boolean): string {
  let text = bytes
  if (text.includes('%')) {
    text = text
      .replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
      .replace(/%u([0-9a-f]{4})/gi, (_, hex: string) =>
        toBytes(String.fromCharCode(Number.parseInt(hex, 16))),
      )
  }
  if (text.includes('+')) text = text.replaceAll('+', ' ')
  if (isQuoted && /["\\]/.test(text)) text = unquoted(text)
  return text
}

/** Quotes mean nothing, wherever they are; what is behind a backslash is itself, or the octal number of a byte. */
function unquoted(text: string): string {
  return text
    .replaceAll('"', '')
    .replace(/\\([0-3][0-7]{2}|[^]?)/g, (_, escaped: string) =>
      escaped.length === 3 ? String.fromCharCode(Number.parseInt(escaped, 8)) : escaped,
    )
}

function toBytes(text: string): string {
  return Buffer.from(text).toString('latin1')
}
