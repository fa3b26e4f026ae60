/** Numbers in [0, 1). The same seed gives the same numbers. */
export type Random = () => number

export function pick<Value>(random: Random, values: readonly [Value, ...Value[]]): Value {
  return values[Math.floor(random() * values.length)] ?? values[0]
}

/** Characters that case folding, normalization or a careless table maps to others, by the resulting character. */
const lookAlikes: Readonly<Record<string, readonly [string, ...string[]]>> = {
  i: ['\u0131', '\u0130'],
  k: ['\u212a'],
  s: ['\u017f'],
  '.': ['\u3002', '\uff0e', '\u2024'],
  '/': ['\u2215', '\u2044'],
  ';': ['\u037e'],
}

/** Writes a character in a form that some reader on the way may still read as that character. */
export function disguise(random: Random, character: string): string {
  const code = character.charCodeAt(0)
  return pick<() => string>(random, [
    () => (character === character.toLowerCase() ? character.toUpperCase() : character.toLowerCase()),
    () => escape(random, character),
    () => escape(random, character),
    () => escapeAgain(random, escape(random, character)),
    // Full-width forms, which NFKC maps to plain characters.
    () => (code > 0x20 && code < 0x7f ? spellUtf8(random, String.fromCharCode(code + 0xfee0)) : character),
    () => spellUtf8(random, pick(random, lookAlikes[character.toLowerCase()] ?? [character])),
    // Overlong UTF-8, and the escapes of IIS.
    () => [0xc0 | (code >> 6), 0x80 | (code & 0x3f)].map((byte) => escapeByte(random, byte)).join(''),
    () => `%u00${code.toString(16).padStart(2, '0')}`,
  ])()
}

/** Escapes all bytes. */
export function escape(random: Random, bytes: string): string {
  return Array.from(bytes, (byte) => escapeByte(random, byte.charCodeAt(0))).join('')
}

function escapeByte(random: Random, byte: number): string {
  const hex = byte.toString(16).padStart(2, '0')
  return `%${pick(random, [hex, hex.toUpperCase()])}`
}

/** Escapes the escapes, for readers that decode twice. */
function escapeAgain(random: Random, escaped: string): string {
  return pick(random, [escaped.replaceAll('%', '%25'), escape(random, escaped)])
}

/** UTF-8, as it is or escaped. */
function spellUtf8(random: Random, text: string): string {
  const bytes = Buffer.from(text).toString('latin1')
  return random() < 0.1 ? bytes : escape(random, bytes)
}
