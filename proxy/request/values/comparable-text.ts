/**
 * A text in the form in which databases compare names of accounts: without accents (`é` is `e` to MySQL's default collation), wide and
 * other compatible characters as the usual ones (Unicode NFKC, which Django applies), and without characters that are not seen.
 *
 * @param text decoded, in lower case, as of `decodedText`
 */
export function comparableText(text: string): string {
  if (isAscii.test(text)) return text
  return text
    .normalize('NFKD')
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKD')
    .replace(unseen, '')
    .replace(/[^\0-\x7f]/gu, (letter) => otherLetters[letter] ?? letter)
    .trim()
}

const isAscii = /^[\0-\x7f]*$/
/** Marks on letters, ignorable characters, controls, and the place of a byte that is not UTF-8, which some decoders leave out. */
const unseen = /[\p{M}\p{Cf}\p{Default_Ignorable_Code_Point}\x80-\x9f\uFFFD]/gu

/** Letters that are others with a stroke, or two of them, to the collations of Unicode (DUCET), but that NFKD leaves as they are. */
const otherLetters: Readonly<Record<string, string>> = {
  ...{ æ: 'ae', œ: 'oe', ø: 'o', đ: 'd', ð: 'd', ħ: 'h', ł: 'l', ŧ: 't', ı: 'i', ĸ: 'q', ß: 'ss', þ: 'th' },
  ...{ ƀ: 'b', ɓ: 'b', ƈ: 'c', ȼ: 'c', ɖ: 'd', ɗ: 'd', ɇ: 'e', ǥ: 'g', ɠ: 'g', ɨ: 'i', ɉ: 'j', ƙ: 'k' },
  ...{
    ƚ: 'l',
    ɲ: 'n',
    ƞ: 'n',
    ɵ: 'o',
    ƥ: 'p',
    ɍ: 'r',
    ȿ: 's',
    ƭ: 't',
    ʈ: 't',
    ʉ: 'u',
    ʋ: 'v',
    ɏ: 'y',
    ƶ: 'z',
    ȥ: 'z',
  },
}
