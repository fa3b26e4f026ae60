/**
 * Letters and digits that equal others in Unicode's collations (DUCET), but that NFKD does not change: with a stroke, ligatures, or in a
 * circle. `\u0363`, an `a` above another letter, is a mark for backends that drop marks, and a letter in those collations. `\u3002` is a
 * dot in names of hosts (UTS 46), as Python's `email_validator` reads them.
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
  th: 'þᵺ',
  u: 'ʉꞟ🅤🆄',
  v: 'ʋ🅥🆅',
  w: 'ꟃ🅦🆆',
  x: '🅧🆇',
  y: 'ɏ🅨🆈',
  z: 'ƶȥ🅩🆉',
  ' ': '\u1680',
  '.': '\u3002',
  10: '⓾❿➉➓㉈',
  11: '⓫',
  12: '⓬',
  13: '⓭',
  14: '⓮',
  15: '⓯',
  16: '⓰',
  17: '⓱',
  18: '⓲',
  19: '⓳',
  20: '⓴㉉',
  '2k': '🆝',
  30: '㉊',
  '3d': '🆛',
  40: '㉋',
  '4k': '🆞',
  50: '㉌',
  60: '㉍',
  70: '㉎',
  80: '㉏',
  '8k': '🆟',
  'a/s': '⅍',
  aa: 'ꜳ𐞀',
  ab: '🆎',
  ao: 'ꜵ',
  au: 'ꜷ',
  av: 'ꜹꜻ',
  ay: 'ꜽ',
  cl: '🆑',
  db: 'ȸ',
  dz: 'ʣ',
  hc: '🆦',
  ic: '🆋',
  id: '🆔',
  ll: 'ỻ',
  ls: 'ʪ',
  lz: 'ʫ',
  ng: '🆖',
  ok: '🆗',
  oo: 'ꝏ',
  pa: '🆌',
  qp: 'ȹ',
  sa: '🆍',
  ts: 'ƾʦ',
  tz: 'ꜩ',
  vs: '🆚',
  vy: 'ꝡ',
  wc: '🆏',
  zw: 'ƍ',
}

/** Numerals of other scripts: the code of the first one, and the digits that it and the following ones stand for. */
const numerals = `
  10107:1-9 10142:1 10143:5 10148:5 1014f:5 10158:1 10159:1 1015a:1-2 1015c:2 1015d:2 1015e:2 1015f:5 10173:5 1018a:0
  102e1:1-9 10320:1 10321:5 103d1:1-2 10858:1-3 10879:1-5 108a7:1-4 108ab:4-5 108fb:1 108fc:5 10916:1 1091a:2-3 109c0:1-9
  10a40:1-4 10a7d:1 10a9d:1 10aeb:1 10aec:5 10b58:1-4 10b78:1-4 10ba9:1-4 10cfa:1 10cfb:5 10e60:1-9 10f1d:1-5 10f51:1
  10fc5:1-4 11052:1-9 111e1:1-9 11c5a:1-9 12400:2-9 12408:3-9 1240f:4-9 12415:1-9 1241e:1-5 12423:2-3 12425:3-9 1242c:1-3
  1242f:3-5 12434:1-3 12437:3-5 1243a:3 1243b:3-4 1243d:4 1243e:4 1243f:4 12440:6-7 12442:7 12443:7-8 12445:8-9 12447:9
  12448:9 12449:9 1244a:2-6 1244f:1-4 12453:4-5 12455:5 12456:2-3 12458:1-2 12469:4-9 16e80:0-9 16e94:1-3 1d2c0:0-9
  1d2e0:0-9 1d360:1-9 1d372:1-5 1d377:1 1d378:5 1e8c7:1-9 1ec71:1-9 1eca3:1-9 1ecb1:1-2 1ed01:1-9 1ed2f:2-9 1f10b:0
  1f10c:0
`

/**
 * Equal letters of other scripts, such as hiragana and katakana, final letters, and capitals of Georgian. The first of each group stands
 * for the others.
 */
const sameLetters = `
  ʩ𝼀 гґ оꙩꙫꙭꙮꚙꚛ \u05da\u05db \u05dd\u05de \u05df\u05e0 \u05e3\u05e4 \u05e5\u05e6 \u0621\u0674\u06fd\u0883\u0887 \u0627\u0870\u0871\u0872\u0873\u0874\u0875\u0876\u0877\u0878\u0879\u087a\u087b\u087c\u087d\u087e\u087f\u0880\u0881\u0882\u08ad \u0645\u06fe \u0648\u06e5\u0884 \u064a\u06e6\u0885\u0886 \u06cc\u08c9 \u0712\u072d \u0713\u0714\u072e \u0715\u072f \u071b\u071c \u0723\u0724 \u0726\u0727 \u07d6\u07e8 \u07d7\u07e9 \u07d9\u07ea ൎർ རཪ აⴀ
  ბⴁ გⴂ დⴃ ეⴄ ვⴅ ზⴆ თⴇ იⴈ კⴉ ლⴊ მⴋ ნⴌ ოⴍ პⴎ ჟⴏ რⴐ სⴑ ტⴒ უⴓ ფⴔ ქⴕ ღⴖ ყⴗ შⴘ ჩⴙ ცⴚ ძⴛ წⴜ ჭⴝ ხⴞ ჯⴟ ჰⴠ ჱⴡ ჲⴢ ჳⴣ ჴⴤ ჵⴥ
  ᚠᚡ ᚢᚤᚥ ᚦᚧ ᚨᚩᚬᚭᚮ ᚲᚳᚴᚵᚶ ᚹᛩ ᚺᚻᚼᚽ ᚾᚿᛀ ᛁᛂ ᛃᛄ ᛅᛆ ᛈᛕ ᛊᛋᛌᛍᛎᛪ ᛏᛐᛑ ᛒᛓᛔ ᛗᛘᛙ ᛚᛛ ᛜᛝ ᛦᛧᛨ ᮃᮺ ᮊᮾ ᮙᮿ ᯀᯁ ᯂᯃᯄ ᯅᯆ ᯇᯈ ᯉᯊ ᯋᯌᯍ ᯎᯏ ᯒᯓ
  ᯔᯕ ᯖᯗ ᯘᯙᯚ ᯛᯜ ᯞᯟ ᳩᳪᳫᳬᳮᳯᳰᳱᳺ ɜᴈ ᴉᵎ ⺀丶 ⺁厂 ⺂乛 ⺃乚 ⺄乙 ⺅亻 ⺆冂 ⺇几 ⺈刀 ⺉刂 ⺊卜 ⺋卩 ⺌⺍小 ⺎⺐尢 ⺏⺑尣 ⺒巳 ⺓幺 ⺔彑 ⺕彐 ⺖忄 ⺗心 ⺘扌 ⺙攵 ⺛旡 ⺜日
  ⺝月 ⺞歺 ⺠民 ⺡氵 ⺢氺 ⺣灬 ⺤⺥爫 ⺦丬 ⺧牛 ⺨犭 ⺩王 ⺪疋 ⺫目 ⺬示 ⺭礻 ⺮竹 ⺯糹 ⺰纟 ⺱⺳⺴罓 ⺲⺵罒 ⺶⺷羊 ⺸羋 ⺹耂 ⺺肀 ⺻聿 ⺼肉 ⺽臼 ⺾⺿⻀艹 ⻁虎 ⻂衤 ⻃覀 ⻄西 ⻅见 ⻆⻇角
  ⻈讠 ⻉贝 ⻊足 ⻋车 ⻌⻍⻎辶 ⻏邑 ⻐钅 ⻑長 ⻒镸 ⻓长 ⻔门 ⻕阜 ⻖阝 ⻗雨 ⻘青 ⻙韦 ⻚页 ⻛风 ⻜飞 ⻝食 ⻞⻟飠 ⻠饣 ⻡首 ⻢马 ⻣骨 ⻤鬼 ⻥鱼 ⻦鸟 ⻧鹵 ⻨麦 ⻩黄 ⻪黾 ⻫齊 ⻬齐 ⻭齒 ⻮齿
  ⻯龍 ⻰龙 ⻱⻲龜 〱〲 〳〴 ぁあァア ぃいィイ ぅうゥウ ぇえェエ ぉおォオ かゕカヵ きキ くクㇰ けゖケヶ こコ さサ しシㇱ すスㇲ せセ そソ たタ ちチ っつッツ てテ とトㇳ なナ にニ ぬヌㇴ ねネ
  のノ はハㇵ ひヒㇶ ふフㇷ へヘㇸ ほホㇹ まマ みミ むムㇺ めメ もモ ゃやャヤ ゅゆュユ ょよョヨ らラㇻ りリㇼ るルㇽ れレㇾ ろロㇿ ゎわヮワ ゐヰ𛅐𛅤 ゑヱ𛅑𛅥 をヲ𛅒𛅦 んン𛅧 ㄅㆠ ㄆㆴ ㄊㆵ ㄍㆣㆻ
  ㄎㆶ ㄏㆷ ㄐㆢ ㄗㆡ ㄚㆩ ㄛㆧ ㄜㄮ ㄞㆮ ㄠㆯ ㄧㆪㆳ ㄨㆨㆫ ㆤㆥ ꕘꘐ ꕪꘑ ꕮꘪ ꖇꘒ ꗑꘫ ꣲꣳꣴꣵꣶꣷ ꦫꦬ
`

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

/** Further marks, each preceded by the letters that it stands for. */
const otherMarks = `
  ae\u1dd4 ao\u1dd5 av\u1dd6 ə\u1dea ʀ\u1de2 ʃ\u1def ɑ\u1de7 ɢ\u1ddb ɴ\u1de1 ʍ\u1ac0 ʟ\u1dde ᴍ\u1ddf ꝯ\u1dd2 ꞵ\u1de9
  ꬸ\u1dec а\u2df6 б\u2de0 в\u2de1 г\u2de2 д\u2de3 е\u2df7 є\ua674 ж\u2de4 з\u2de5 и\ua675 і\ua676 к\u2de6 л\u2de7
  м\u2de8 н\u2de9 о\u2dea п\u2deb р\u2dec с\u2ded т\u2dee у\ua677 ф\ua69e х\u2def ц\u2df0 ч\u2df1 ш\u2df2 щ\u2df3
  ъ\ua678 ы\ua679 ь\ua67a ѣ\u2dfa ю\u2dfb ѡ\ua67b ѥ\ua69f ѧ\u2dfd ѫ\u2dfe ѭ\u2dff ѳ\u2df4 ꙋ\u2df9 ꙉ\u2df8 ꙗ\u2dfc
  ᨦ\u1a58 ᨦ\u1a59 ᨻ\u1a5a ᨻ\u1a5b ι\u037a
`

/** A mark, or U+037A, an iota that NFKD turns into a mark on a blank. */
const isMark = /[\p{M}\u037a]/u
const usual = new Map<string, string>([
  ...[letters, marks].flatMap((table) =>
    Object.entries(table).flatMap(([usual, others]) =>
      Array.from(others, (other) => [other, usual] as const),
    ),
  ),
  ...wordsOf(numerals).flatMap(digitsOf),
  ...wordsOf(sameLetters).flatMap((word) => {
    const [usual = '', ...others] = word
    return others.map((other) => [other, usual] as const)
  }),
  ...wordsOf(otherMarks).map((word) => [word.slice(-1), word.slice(0, -1)] as const),
])

function wordsOf(text: string): string[] {
  return text.trim().split(/\s+/)
}

/** Returns pairs of a numeral and its digit. */
function digitsOf(numeral: string): (readonly [string, string])[] {
  const [start = '', digits = ''] = numeral.split(':')
  const [first = 0, last = first] = digits.split('-').map(Number)
  const code = Number.parseInt(start, 16)
  return Array.from({ length: last - first + 1 }, (_, i) => [
    String.fromCodePoint(code + i),
    String(first + i),
  ])
}

const others = [...usual.keys()]
const otherLetter = new RegExp(`[${others.filter((other) => !isMark.test(other)).join('')}]`, 'gu')
const markLetter = new RegExp(`[${others.filter((other) => isMark.test(other)).join('')}]`, 'gu')

/** Replaces letters such as `ø` with the usual ones, such as `o`. */
export function withUsualLetters(text: string): string {
  return text.replace(otherLetter, (letter) => usual.get(letter) ?? letter)
}

/** Replaces marks that stand for letters with these letters. */
export function withMarksAsLetters(text: string): string {
  return text.replace(markLetter, (letter) => usual.get(letter) ?? letter)
}
