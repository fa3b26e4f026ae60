/** A generated request with a body: its `Content-Type` lines, its query, and the body as one character per byte. */
export type DrawnRequest = {
  readonly types: readonly string[]
  readonly query: string
  readonly body: string
}

export type AccountPath = 'email' | 'user.email'

type Random = () => number

/**
 * Generates a request that may state an account at a path, in a form that some backend reads, more or less damaged.
 *
 * @param path `email`, or `user.email` for a member of an object
 */
export function drawRequest(random: Random, path: AccountPath = 'email'): DrawnRequest {
  const kind = pick(random, kinds)
  const boundary = pick(random, boundaries)
  const body = damaged(random, writers[kind](random, boundary, path))
  const own = ownTypes[kind](random, boundary)
  const types = chance(random, 0.75)
    ? [chance(random, 0.06) ? withCharset(random, own) : own]
    : drawTypes(random, boundary)
  return {
    types,
    query: chance(random, 0.15) ? form(random, path) : '',
    body: chance(random, 0.03)
      ? encoded(random, body)
      : chance(random, 0.03)
        ? withEighthBit(random, body)
        : body,
  }
}

function pick<Item>(random: Random, items: readonly Item[]): Item {
  const item = items[Math.floor(random() * items.length)]
  if (item === undefined) throw new RangeError('an empty list')
  return item
}

function chance(random: Random, part: number): boolean {
  return random() < part
}

function many(random: Random, most: number, draw: () => string): string[] {
  return Array.from({ length: Math.floor(random() * (most + 1)) }, draw)
}

const kinds = ['json', 'json', 'form', 'form', 'multipart', 'multipart'] as const
type Kind = (typeof kinds)[number]

const boundaries = ['b', 'B-1', 'xx', '----WebKitFormBoundaryA1', "a'b", 'b b', '--', 'b.']

const writers: Readonly<Record<Kind, (random: Random, boundary: string, path: AccountPath) => string>> = {
  json: (random, _, path) => json(random, path),
  form: (random, _, path) => form(random, path),
  multipart,
}

const ownTypes: Readonly<Record<Kind, (random: Random, boundary: string) => string>> = {
  json: (random) =>
    pick(random, [
      'application/json',
      'application/json; charset=utf-8',
      'APPLICATION/JSON',
      'application/json;',
    ]),
  form: () => 'application/x-www-form-urlencoded',
  multipart: (random, boundary) =>
    `multipart/form-data; ${chance(random, 0.8) ? `boundary=${chance(random, 0.5) ? `"${boundary}"` : boundary}` : boundaryParameters(random, boundary)}`,
}

/** Parameters in which only some parsers find the boundary. */
function boundaryParameters(random: Random, boundary: string): string {
  const [first = '', ...rest] = boundary
  return pick(random, [
    ...[
      `boundary*=utf-8''${encodeURIComponent(boundary)}`,
      `boundary=a; boundary*=utf-8''${escapeAll(boundary)}`,
      `boundary*0=${boundary}`,
      `boundary*0=${first}; boundary*1="${rest.join('')}"`,
      `boundary*=us-ascii'en'${boundary}; boundary=a`,
    ],
    ...[
      `boundary=1; boundary=2; boundary=3; boundary=4; boundary=${boundary}`,
      `boundary=${boundary}; boundary=2; boundary=3; boundary=4; boundary=5`,
    ],
    ...[
      `boundary = ${boundary}`,
      `boundary= ${boundary}`,
      `boundary= "${boundary}"`,
      `boundary="${boundary}`,
    ],
    ...[`boundary="${boundary};x"`, `boundary="${boundary},x"`, `boundary="x;boundary=${boundary}"`],
    ...[
      `boundary="\\${boundary}"`,
      `boundary=${boundary}"`,
      `boundary=""${boundary}`,
      `boundary='${boundary}'`,
    ],
    ...[`bound"ary=${boundary}`, `boun dary=${boundary}`, `bound\\ary=${boundary}`, `boundary x=${boundary}`],
  ])
}

function escapeAll(text: string): string {
  return Buffer.from(text).toString('hex').replace(/../g, '%$&')
}

/** Charsets in which frameworks read other letters than in UTF-8. */
const charsets = [
  ...['utf-7', 'utf-16', 'utf-16le', 'utf-16be', 'utf-32', 'iso-8859-1', 'windows-1252', 'shift_jis'],
  ...['iso-2022-jp', 'hz', 'cp037', 'unicode_escape', 'raw_unicode_escape', 'utf-8-sig'],
]

/** A type with a charset, under its usual name and in forms that some parsers read. */
function withCharset(random: Random, type: string): string {
  const charset = pick(random, charsets)
  return `${type}${pick(random, ['; charset=', ';Charset=', '; charset="', "; charset*=utf-8''", '; charset=utf-8; charset='])}${charset}`
}

function drawTypes(random: Random, boundary: string): string[] {
  const draw = (): string =>
    pick(random, [
      ...[
        'application/json',
        'application/x-www-form-urlencoded',
        'text/plain',
        'text/json',
        'application/vnd.api+json',
      ],
      ...[
        'application/json; charset=utf-16',
        'application/json; charset=latin1',
        'application/octet-stream',
        '*/*',
        '',
      ],
      ...[
        'application/x-www-form-urlencoded; charset=utf-8',
        'application/json, text/plain',
        'application/ json',
        'json',
      ],
      ...[
        `multipart/form-data; boundary=${boundary}; boundary=b`,
        `multipart/form-data; boundary=b; boundary=${boundary}`,
      ],
      ...[
        `multipart/form-data; Boundary="${boundary}"`,
        `multipart/form-data; ${boundaryParameters(random, boundary)}`,
        `multipart/mixed; boundary=${boundary}`,
        'multipart/form-data',
      ],
      ...[
        `multipart/form-data; charset=utf-8; boundary=${boundary}`,
        `multipart/form-data;boundary=${boundary}, x`,
      ],
    ])
  return many(random, 2, draw)
}

const accounts = [
  'a@x',
  'B@x',
  'u1',
  'é',
  '7',
  '07',
  'long.name+tag@example.com',
  '\u212a',
  'ſ',
  'ﬃ',
  '😀',
  ' a@x ',
  "o'x",
  'a"x',
  'a\\x',
  'a%41',
  // In one of the generated charsets this is another name.
  'u+AGE-',
  'u\\x61',
  'u\\u0061',
  'u~{~}a',
  'u\x1b(Ba',
  'null',
  '',
]

const names = [
  ...Array.from({ length: 16 }, () => 'email'),
  'email',
  'email',
  'email',
  'email',
  'Email',
  'EMAIL',
  'e_mail',
  'emaıl',
  'user',
  'password',
  'x',
  '__proto__',
  'emai',
  'email2',
  'ſ',
]

/** Names of the members that lead to the account. */
const namesAround = [
  ...names.map((name) => (name === 'email' ? 'user' : name)),
  'User',
  'USER',
  'us_er',
  'u\u017fer',
]

/** Names of form fields. */
const fieldNames: Readonly<Record<AccountPath, readonly string[]>> = {
  email: names,
  'user.email': [
    ...Array.from({ length: 5 }, () => ['user[email]', 'user.email']).flat(),
    ...['user[0][email]', 'user[][email]', 'User[EMAIL]', 'user[e_mail]', 'user_email', 'useremail'],
    ...[
      'user[emaıl]',
      '[user][email]',
      'user[email][]',
      'user.[email]',
      'user[x][email]',
      'user',
      'email',
      'x',
    ],
  ],
}

/** How a JSON text is generated. */
type JsonForm = {
  /** Whether objects enclose the account. */
  readonly isAround: boolean
  /** Whether to leave out syntax that only lenient parsers read, because frameworks with strict parsers would then read almost no body. */
  readonly isStrict: boolean
}

function jsonText(random: Random, text: string, { isStrict }: JsonForm): string {
  const written = Array.from(text).map((character) => {
    if (!chance(random, 0.1)) return JSON.stringify(character).slice(1, -1)
    return Array.from(
      { length: character.length },
      (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`,
    ).join('')
  })
  if (chance(random, 0.03))
    written.push(
      pick(random, ['\\ud800', '\\/', '\\u0000', '\\n', ...(isStrict ? [] : ['\\x41', '\n', '\\'])]),
    )
  const quote = !isStrict && chance(random, 0.03) ? "'" : '"'
  return `${quote}${written.join('')}${quote}`
}

const blanks = [' ', '\n', '\t', '\r\n']
const lenientBlanks = [...blanks, '/* x */', '// x\n', '/*"*/', '\f', '\u00a0', '#x\n']
const words = ['7', '7.0', '1e2', '-0', '12345678901234567890', 'true', 'null', '1e400']
const lenientWords = [...words, '0x7', '07', 'NaN', 'Infinity', '.5']

function blank(random: Random, { isStrict }: JsonForm): string {
  return chance(random, 0.85) ? '' : pick(random, isStrict ? blanks : lenientBlanks)
}

function jsonValue(random: Random, depth: number, form: JsonForm): string {
  const { isAround, isStrict } = form
  const draw = random()
  if (!isAround && draw < 0.6) return jsonText(random, pick(random, accounts), form)
  if (isAround ? draw < 0.1 : draw < 0.7) return pick(random, isStrict ? words : lenientWords)
  if (depth > 3) return '{}'
  return draw < 0.85
    ? jsonObject(random, depth + 1, { isStrict, isAround: isAround && chance(random, 0.1) })
    : jsonArray(random, depth + 1, form)
}

function jsonObject(random: Random, depth: number, form: JsonForm): string {
  const { isAround, isStrict } = form
  const isOdd = (part: number): boolean => !isStrict && chance(random, part)
  const members = many(random, isAround ? 2 : 4, () => {
    const name = isOdd(0.03) ? 'email' : jsonText(random, pick(random, isAround ? namesAround : names), form)
    const separator = isOdd(0.02) ? pick(random, ['=', '=>', '::', '']) : ':'
    const value = jsonValue(random, depth, form)
    return `${blank(random, form)}${name}${blank(random, form)}${separator}${blank(random, form)}${value}`
  })
  const comma = isOdd(0.02) ? pick(random, [';', ',,', ' ']) : ','
  return `{${members.join(comma)}${isOdd(0.03) ? ',' : ''}${blank(random, form)}}`
}

function jsonArray(random: Random, depth: number, form: JsonForm): string {
  const last = !form.isStrict && chance(random, 0.03) ? ',' : ''
  return `[${many(random, 3, () => jsonValue(random, depth, form)).join(',')}${last}]`
}

function json(random: Random, path: AccountPath): string {
  const form = { isAround: path !== 'email', isStrict: chance(random, 0.5) }
  const text = chance(random, 0.8) ? jsonObject(random, 0, form) : jsonArray(random, 0, form)
  const before = chance(random, 0.05) ? pick(random, ['\ufeff', ' ', ")]}',\n", '\u2028', '/**/']) : ''
  const after = chance(random, 0.08) ? pick(random, [' x', text, '\n{}', '&email=z', ';', '}', '\0']) : ''
  const all = before + text + after
  if (chance(random, 0.02)) return Buffer.from(all, 'utf16le').toString('latin1')
  return Buffer.from(all).toString('latin1')
}

function formText(random: Random, text: string): string {
  return Array.from(Buffer.from(text).toString('latin1'))
    .map((byte) => {
      if (byte === ' ') return '+'
      const code = byte.charCodeAt(0)
      const escape = `%${code.toString(16).padStart(2, '0')}`
      if (/[A-Za-z0-9@._-]/.test(byte) ? chance(random, 0.1) : chance(random, 0.9)) return escape
      return byte
    })
    .join('')
}

function formName(random: Random, path: AccountPath): string {
  const name = pick(random, fieldNames[path])
  const written = chance(random, 0.7)
    ? name
    : pick(random, [
        `${name}[]`,
        `${name}[x]`,
        `[${name}]`,
        `${name}[0]`,
        ` ${name}`,
        `${name}.x`,
        `${name}[`,
        `${name}]`,
        `x[${name}]`,
        `${name}[a=b]`,
        `${name}[__proto__]`,
        `${name}\0x`,
      ])
  return formText(random, written)
}

function form(random: Random, path: AccountPath): string {
  const pairs = many(random, 4, () => {
    const equals = chance(random, 0.95) ? '=' : pick(random, ['', '==', '%3d', ' = '])
    return `${formName(random, path)}${equals}${formText(random, pick(random, accounts))}`
  })
  return pairs.join(chance(random, 0.9) ? '&' : pick(random, [';', '&&', '&;', ',', '%26', '\n', '&amp;']))
}

function multipart(random: Random, boundary: string, path: AccountPath): string {
  const end = chance(random, 0.92) ? '\r\n' : pick(random, ['\n', '\r', '\r\n\r\n'])
  const parts = many(random, 3, () => {
    const name = pick(random, fieldNames[path])
    const named = pick(random, [
      ...Array.from({ length: 6 }, () => `name="${name}"`),
      ...[
        `name=${name}`,
        `name='${name}'`,
        `name*=UTF-8''${encodeURIComponent(name)}`,
        `Name="${name}"`,
        `name = "${name}"`,
      ],
      ...[
        `name="x"; name="${name}"`,
        `name="${name}"; name="x"`,
        `name="\\${name}"`,
        `name="${name}`,
        `filename="f"; name="${name}"`,
      ],
      ...[
        `name="${name}"; filename="f"`,
        `name="${name}"; filename=""`,
        `name="${name}[]"`,
        `name="${encodeURIComponent(name)}"`,
        `name*0="${name.slice(0, 2)}"; name*1="${name.slice(2)}"`,
      ],
      ...[
        `name=${name}${pick(random, ['/', '(', '\x01', '@', '{'])}x`,
        `name="${name.slice(0, 2)}"${name.slice(2)}"`,
        `name${pick(random, ['\x1c', '\u2003'])}="${name}"`,
        `na\nme="${name}"`,
      ],
    ])
    const heads = [
      `${pick(random, ['Content-Disposition', 'content-disposition', 'Content-Disposition '])}: ${pick(random, ['form-data', 'form-data', 'form-data', 'attachment', 'FORM-DATA', ''])}; ${named}`,
    ]
    if (chance(random, 0.1)) {
      if (chance(random, 0.7)) heads.pop()
      const empty = pick(random, ['form-data', 'form-data; name=""', 'form-data; x=y'])
      heads.push(
        pick(random, [
          ...[
            `Content-ID: ${name}`,
            `content-id:${name}`,
            `Content-ID:${end} ${name}`,
            `Content-ID: <${name}>`,
          ],
          ...[`Content-Type: ${name}`, `X: Content-ID: ${name}`],
          ...[
            `Content-Disposition: ${empty}${end}Content-Type: ${name}`,
            `Content-Disposition: ${empty}${end}Content-ID: ${name}`,
          ],
        ]),
      )
    }
    if (chance(random, 0.2))
      heads.push(
        pick(random, [
          ...[
            'Content-Type: text/plain',
            'Content-Type: text/plain; charset=utf-16',
            withCharset(random, 'Content-Type: text/plain'),
            withCharset(random, 'Content-Type: text/plain'),
            withCharset(random, 'Content-Type: text/plain'),
            'Content-Type: application/json',
          ],
          ...[
            'Content-Transfer-Encoding: base64',
            'Content-Transfer-Encoding: quoted-printable',
            'Content-Transfer-Encoding: 8bit',
          ],
          ...[
            'X: y',
            ' folded',
            'Content-Disposition: form-data; name="x"',
            'Content-Type: multipart/mixed; boundary=c',
          ],
        ]),
      )
    if (chance(random, 0.3)) heads.reverse()
    const isBase64 = heads.some((head) => head.includes('base64'))
    const account = pick(random, accounts)
    const content = isBase64 ? Buffer.from(account).toString('base64') : account
    const head = `${heads.join(end)}${end}${end}`
    const last = chance(random, 0.9) ? end : pick(random, ['\n', '\r', '', ' '])
    return `--${boundary}${end}${chance(random, 0.2) ? withInserted(random, head, boundary) : head}${content}${last}`
  })
  const before = chance(random, 0.05) ? pick(random, ['preamble\r\n', '\r\n', ' ']) : ''
  const last = chance(random, 0.9)
    ? `--${boundary}--${end}`
    : pick(random, ['', `--${boundary}`, `--${boundary}--`, `--${boundary}-- x`])
  return Buffer.from(before + parts.join('') + last).toString('latin1')
}

/** A head with an insertion that readers take for the end of a line, of the head or of the part, or that they drop. */
function withInserted(random: Random, head: string, boundary: string): string {
  const inserted = pick(random, [
    ...[
      '\0',
      '\r',
      '\n',
      '\r\n',
      '\r\r',
      '\n\n',
      '\r\n ',
      '\0\r\n',
      '\r\n\0\r\n',
      '\v',
      ' ',
      '"',
      "'",
      '\\',
      ';',
      '*',
    ],
    ...[`\r\n--${boundary}`, `\r\n--${boundary}\r\n`, `\r\n--${boundary}--\r\n`, `--${boundary}\r\n`],
  ])
  const at = Math.floor(random() * (head.length + 1))
  // PHP reads lines of up to 5120 bytes.
  if (chance(random, 0.1)) return `X: ${'a'.repeat(5110 + Math.floor(random() * 10))}\r\n${head}`
  return head.slice(0, at) + inserted + head.slice(at)
}

/** In some requests, drops, repeats or replaces a few bytes. */
function damaged(random: Random, body: string): string {
  if (chance(random, 0.85) || body === '') return body
  let text = body
  for (let left = 1 + Math.floor(random() * 3); left > 0; left--) {
    const at = Math.floor(random() * text.length)
    const other = pick(random, [
      '',
      '',
      '"',
      '\\',
      '=',
      '&',
      ';',
      ',',
      ':',
      '{',
      '}',
      '[',
      ']',
      '\r',
      '\n',
      '\0',
      '%',
      '\xff',
      '-',
      ' ',
    ])
    text = text.slice(0, at) + other + text.slice(at + (chance(random, 0.5) ? 1 : 0))
  }
  return text
}

/** Sets the eighth bit of some bytes, which formidable drops from forms. */
function withEighthBit(random: Random, body: string): string {
  return body.replace(/[^]/g, (byte) =>
    chance(random, 0.1) ? String.fromCharCode(byte.charCodeAt(0) | 0x80) : byte,
  )
}

function encoded(random: Random, body: string): string {
  const encoding = pick(random, ['utf16le', 'base64', 'hex'] as const)
  return encoding === 'utf16le'
    ? Buffer.from(body, 'utf16le').toString('latin1')
    : Buffer.from(body, 'latin1').toString(encoding)
}
