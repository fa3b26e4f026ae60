/**
 * Letters and digits that are others to the collations of Unicode (DUCET), but that NFKD leaves as they are: with a stroke, two of them, or in a
 * circle. `\u0363`, an `a` above another letter, is a mark to whoever drops marks, and a letter to those collations.
 */
const letters: Readonly<Record<string, string>> = {
  0: '౸༳៰⓿〇',
  1: '৴౹౼༪፩៱᧚⓵❶➀➊〡',
  2: '৵౺౽༫፪៲⓶❷➁➋〢',
  3: '৶౻౾༬፫៳⓷❸➂➌〣',
  4: '৷༭፬៴⓸❹➃➍〤',
  5: '༮፭៵⓹❺➄➎〥',
  6: '༯፮៶ↅ⓺❻➅➏〦',
  7: '༰፯៷⓻❼➆➐〧',
  8: '༱፰៸⓼❽➇➑〨',
  9: '༲፱៹⓽❾➈➒〩',
  a: 'ꞛꟁ🅐🅰',
  ae: 'æ',
  b: 'ƀɓ🅑🅱',
  c: 'ƈȼ🅒🅲',
  d: 'đðɖɗꝺ🅓🅳🆥',
  e: 'ɇ🅔🅴',
  f: 'ꝼ🅕🅵',
  g: 'ǥɠᵹꞡ🅖🅶',
  h: 'ħ🅗🅷',
  i: 'ıɨ🅘🅸',
  j: 'ɉ🅙🅹',
  k: 'ƙꞣ🅚🅺',
  l: 'łƚ🅛🅻',
  m: '🅜🅼',
  n: 'ɲƞꞥ🅝🅽',
  o: 'øɵꞝ🅞🅾',
  oe: 'œ',
  p: 'ƥ🅟🅿🆊',
  q: 'ĸ🅠🆀',
  r: 'ɍꝛꞃꞧ🅡🆁',
  s: 'ȿꞅꞩꟙ🅢🆂',
  ss: 'ß',
  t: 'ŧƭʈꞇ🅣🆃',
  th: 'þ',
  u: 'ʉꞟ🅤🆄',
  v: 'ʋ🅥🆅',
  w: 'ꟃ🅦🆆',
  x: '🅧🆇',
  y: 'ɏ🅨🆈',
  z: 'ƶȥ🅩🆉',
}

const marks: Readonly<Record<string, string>> = {
  a: '\u0363\u1dd3\u1df2',
  b: '\u1de8',
  c: '\u0368\u1dd7',
  d: '\u0369\u1dd8\u1dd9',
  e: '\u0364',
  f: '\u1deb',
  g: '\u1acc\u1dda',
  h: '\u036a',
  i: '\u0365',
  k: '\u1ddc',
  l: '\u1ddd',
  m: '\u036b',
  n: '\u1de0',
  o: '\u0366\u1ded\u1df3',
  p: '\u1dee',
  r: '\u036c\u1acd\u1dca\u1de3',
  s: '\u1de4\u1de5',
  t: '\u036d\u1ace',
  u: '\u0367\u1df0\u1df4',
  v: '\u036e',
  w: '\u1abf\u1df1',
  x: '\u036f',
  z: '\u1de6',
}

const isMark = /\p{M}/u
const usual = new Map(
  [letters, marks].flatMap((table) =>
    Object.entries(table).flatMap(([usual, others]) =>
      Array.from(others, (other) => [other, usual] as const),
    ),
  ),
)
const others = [...usual.keys()]
const otherLetter = new RegExp(`[${others.filter((other) => !isMark.test(other)).join('')}]`, 'gu')
const markLetter = new RegExp(`[${others.filter((other) => isMark.test(other)).join('')}]`, 'gu')

/** With `o` for `ø`. */
export function withUsualLetters(text: string): string {
  return text.replace(otherLetter, (letter) => usual.get(letter) ?? letter)
}

/** With letters for marks that are letters, or the text itself. */
export function withMarksAsLetters(text: string): string {
  return text.replace(markLetter, (letter) => usual.get(letter) ?? letter)
}
