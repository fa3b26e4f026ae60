import { bodyKeysOf } from '../../../proxy/limits/keys/body/body-keys.ts'
import { KeyBody } from '../../../proxy/limits/keys/body/key-body.ts'
import { bodyNamesOf, type BodyPart } from '../../../proxy/limits/keys/body/names/body-names.ts'
import type { ByteReader, CostRow } from '../../support/cost/row.ts'

/** The gateway reads no more of a body than this. */
const largestBytes = 64 * 1024
const oneName = partsOf('user.email')
const sevenNames = partsOf('user.email', 'email', 'user', 'username', 'user.0', 'password', 'items.email')

function partsOf(...names: readonly string[]): BodyPart[] {
  return names.map((name) => ({ kind: 'body', name, path: name.split('.') }))
}

/** Reads a body as rules by account do, from the first byte to the keys. */
function open(type: string, parts: readonly BodyPart[]): () => ByteReader {
  const rawHeaders = ['content-type', type]
  // The gateway keeps them for all requests to which the same rules apply.
  const names = bodyNamesOf([{ partition: parts }])
  return () => ({
    take(bytes) {
      const body = new KeyBody({ bytes, isWhole: true }, { rawHeaders }, '/login', names)
      const kept = parts.map((part) => bodyKeysOf({ partition: [part] }, () => [], body, '192.0.2.1'))
      Object.assign(this, { kept })
    },
  })
}

/** Every request may carry such a body, so it must cost far less than input that a connection sends once. */
const maxMs = 2
const whole = { largestBytes, onlyWhole: true, maxMs } as const
const values = ['a', 'á', '%00{n}', '\\u00e9', '\\ud800', '\xc3\xa9', '\xff', '7e{n}', 'ﬃ', '{n}', '\u200b']

/** The contents of bodies, for any reader. */
type BodyRow = Omit<CostRow, 'open'>

const json: BodyRow = {
  ...whole,
  name: 'a JSON body that a rule counts by',
  units: [
    ...['[', '{"user":', '{"email":1},', '{"user":{"email":"{n}"}},', '"user":{"email":"a\\u0041{n}"},'],
    ...[
      '{},',
      '[],',
      '1,',
      '"us\\u0065r":1,',
      '"{n}":1,',
      '\\u0041',
      '"',
      '"email":["',
      '"user":[',
      '"email":{',
    ],
  ],
  atoms: [
    '"user":',
    '"email":',
    '"em\\u0061il":',
    '{',
    '}',
    '[',
    ']',
    ',',
    '"',
    '1',
    'null',
    ' ',
    '\\',
    ...values,
  ],
  wrap: (content) => `[{"user":{"email":"x","y":"${content}`,
}

const validJson: BodyRow = {
  ...json,
  name: 'a batch of JSON',
  units: [
    '{"user":{"email":"\\n{n}"}},',
    '{"user":{"email":"{n}"}},',
    '{"user":{"email":["{n}á"]}},',
    '{"user":[[[]]]},',
    ...['["{n}á","{n}"],', '{"email":"{n}á"},', '"{n}á",', '{"user":["{n}á"]},'],
    '[],',
    '"us\\u0065r",',
  ],
  wrap: (content) => `[${content}1]`,
}

const references: BodyRow = {
  ...json,
  name: 'the references of superjson in a JSON body',
  units: ['"a",', '"a.",', '"user.emai",', '".-",', '"é",', '"{n}.email{n}",', '"\\u0065.",'],
  wrap: (content) => `{"meta":{"referentialEqualities":{"x":[${content}"a"]}}}`,
}

/** Characters that are ignored, one for each digit. */
const unseen = [
  '\u00ad',
  '\u034f',
  '\u0345',
  '\u200b',
  '\u200c',
  '\u200d',
  '\u2060',
  '\u180b',
  '\u0301',
  '\ufe0f',
].map((text) => Buffer.from(text).toString('latin1'))

const spellings: BodyRow = {
  ...validJson,
  name: 'a batch of JSON with many spellings of one account',
  units: ['a', 'é', 'ᾳ', 'ß', 'ﷺ', '😀'].map(
    (account) => `{"user":{"email":"${Buffer.from(account).toString('latin1')}{n}"}},`,
  ),
  atoms: [],
  wrap: (content) => {
    const spelled = content.replace(/\d/g, (digit) => unseen[Number(digit)] ?? '').slice(0, largestBytes - 3)
    return `[${spelled.slice(0, spelled.lastIndexOf('},') + 2)}1]`
  },
}

const looseJson: BodyRow = {
  ...json,
  name: 'a body of broken JSON',
  units: [
    ...[
      'email:',
      'email=',
      "email:'",
      'email:"\\"',
      'email:[',
      'email:{a,',
      ':',
      '=',
      '"email":"{n}"',
      '/*',
      '//',
      '#',
    ],
    ...['"\\"', '\\u0065mail:', "'", '`', 'email :', 'email/**/:', '"email', 'email:é{n} '],
  ],
  atoms: [
    'email',
    ':',
    '=',
    '"',
    "'",
    '`',
    '\\',
    '/*',
    '*/',
    '//',
    '\n',
    '#',
    '{',
    '[',
    ']',
    '}',
    ',',
    ...values,
  ],
  wrap: (content) => `{${content}`,
}

const form: BodyRow = {
  ...whole,
  name: 'a form that a rule counts by',
  units: [
    ...[
      'user[email]={n}&',
      'user[email]=%00{n};',
      ';',
      '&',
      '=',
      'user%5Bemail%5D=é{n}&',
      'user[',
      'a&',
      '[]',
      '%',
      '%25',
    ],
    ...['%e1%4', '%4', '% 4', '%e1', '%4%e1+'].flatMap((escape) => [
      `user[email]=${escape.repeat(2000 / escape.length)}&`,
      `user[email]={n}${escape.repeat(2000 / escape.length)}&`,
      `user[email]={n}${escape.repeat(300 / escape.length)}&`,
      `user[email]=${escape.repeat(200 / escape.length)}&`,
    ]),
    `user[email]={n}${'%4%31'.repeat(30)}&user[email]=${'%e1%4'.repeat(40)}&`,
    ...['email=a;&', 'password=a;&', 'user=;&', `user${'%5B0%5D'.repeat(5)}%5Bemail%5D=a{n}&`],
    ...['\xff=&', '\xf5ser.email={n}\xa6', 'user[email]={n}\xe1%\xb4\xa6&'],
    ...['%75ser.email=;', 'ſ=&', 'user[a=b]=1&', ']=', 'user.0.email={n}&', 'useremail'],
  ],
  atoms: [
    'user',
    'email',
    '[',
    ']',
    '.',
    '%5B',
    '%5D',
    '%',
    '+',
    '=',
    '&',
    ';',
    'ſ',
    '%2575',
    '%4',
    '%e1',
    ...values,
  ],
  wrap: (content) => `user[email]=x&${content}`,
}

const disposition = 'Content-Disposition: form-data; name='

const multipart: BodyRow = {
  ...whole,
  name: 'a multipart form that a rule counts by',
  units: [
    ...[
      `${disposition}user.email\r\n\r\n{n}`,
      `${disposition}user.email\n\n`,
      `${disposition}"user.email`,
      disposition,
    ],
    ...[
      '\r\n--b',
      '\n--',
      `\r\n--b\r\n${disposition}user.email\r\nContent-Transfer-Encoding: base64\r\n\r\n{n}`,
    ],
    ...[
      '-',
      'name=',
      'content-disposition:',
      ...[
        'content-id:',
        'content-id:user',
        'content-type:\xff',
        'content-type:[1]',
        'content-id:user.email\r\n',
      ],
      'content-id:user.email\r\n\r\n{n}',
      '\r\n\r\n',
      '\r\n',
      `${disposition}"user\\.email";name*=''user.email\r\n\r\n`,
      `${disposition}a; name*{n}="{n}user.email${'x'.repeat(200)}";`,
      `${disposition}a; name*{n}=;`,
      `${disposition}"a"x"{n}"${'x'.repeat(200)};`,
      `${disposition}${'user.email/{n} "name='.repeat(100)}`,
      `${disposition}a; name${'\x1c'.repeat(1000)}*\x1c{n}`,
      `\r\n--b\r\n${disposition}a; name*${' '.repeat(1000)}x\r\n\r\n`,
      `\r\n--b\r\n${disposition}a*; name${' '.repeat(1000)}x\r\n\r\n`,
      `\r\n--b\r\n${disposition}a\r\n${`${'x'.repeat(4990)}\n`.repeat(12)}\r\n\r\n`,
    ],
  ],
  atoms: [
    disposition,
    'content-id:',
    'name=',
    '"',
    ';',
    'user.email',
    '\r\n',
    '\n',
    '\r',
    '--b',
    '--',
    ' ',
    'base64',
    ...values,
  ],
  wrap: (content) => `--b\r\n${disposition}"user.email"\r\n\r\nx${content}\r\n--b--`,
}

/** Boundaries that are found only after a look at each of their characters. */
const longBoundaries = ['a', 'b', 'c', 'd'].map((last) => '-'.repeat(69) + last)

/** Each of four boundaries is looked for twice. */
const longMultipart: BodyRow = {
  ...whole,
  maxMs: 4,
  name: 'a multipart form with long boundaries',
  units: [
    '-',
    `${'-'.repeat(70)}\n`,
    `${'-'.repeat(71)}b`,
    '\n-',
    '\r\n--',
    'Content-\nDisposition: form-data; ',
  ],
  atoms: ['-', '-'.repeat(69), 'a', '\r\n', '\n', 'name=', disposition],
  wrap: (content) => `--${longBoundaries[0]}\r\n${disposition}"user.email"\r\n\r\nx${content}`,
}

const otherTypes: BodyRow = {
  ...multipart,
  name: 'a body of another type that a rule counts by',
  units: [...json.units, ...looseJson.units, ...form.units, ...multipart.units],
  wrap: (content) => `{"user":{"email":"x--=${content}`,
}

/** Cleaning 4 KiB, and comparing the result in four languages, takes another millisecond. */
const maxCleanMs = 3
/** Account names that WordPress would clean. */
const uncleanValues = [
  ...'< << <script> </style> <!-- <? <?xml <?xm <!doctyp & ; %4 %C3%A91 " ( > %\u00e9 %\u00e6 \u20ac üåđ'.split(
    ' ',
  ),
  "'",
  '&\n',
  '\0',
]

function uncleanUnits(open: string, close: string): string[] {
  return uncleanValues.flatMap((value) =>
    [1, 300, 2000].map((length) => `${open}${value.repeat(Math.ceil(length / value.length))}{n}${close}`),
  )
}

const uncleanJson: BodyRow = {
  ...validJson,
  maxMs: maxCleanMs,
  name: 'a batch of JSON with accounts to clean',
  units: uncleanUnits('{"user":{"email":"', '"}},').map((unit) =>
    unit.replaceAll('\n', '\\n').replaceAll('\0', '\\u0000'),
  ),
  atoms: [...uncleanValues.filter((value) => value !== '"'), '{"user":{"email":"', '"}},', ...values],
}

const uncleanForm: BodyRow = {
  ...form,
  maxMs: maxCleanMs,
  name: 'a form with accounts to clean',
  units: uncleanUnits('user[email]=', '%&'),
  atoms: [...uncleanValues, 'user[email]=', '&', ...values],
}

const uncleanMultipart: BodyRow = {
  ...multipart,
  maxMs: maxCleanMs,
  name: 'a multipart form with accounts to clean',
  units: uncleanUnits(`\r\n--b\r\n${disposition}user.email\r\n\r\n`, ''),
  atoms: [...uncleanValues, `\r\n--b\r\n${disposition}user.email\r\n\r\n`, ...values],
}

const rowsByType: readonly (readonly [BodyRow, type: string])[] = [
  [json, 'application/json'],
  [validJson, 'application/json'],
  [spellings, 'application/json'],
  [looseJson, 'application/json'],
  [form, 'application/x-www-form-urlencoded'],
  [multipart, 'multipart/form-data; boundary=b; boundary="b-"'],
  [longMultipart, `multipart/form-data; ${longBoundaries.map((one) => `boundary=${one}`).join('; ')}`],
  [multipart, `multipart/form-data; boundary=${'-'.repeat(7000)}`],
  [otherTypes, 'text/plain'],
  [uncleanJson, 'application/json'],
  [uncleanForm, 'application/x-www-form-urlencoded'],
  [uncleanMultipart, 'multipart/form-data; boundary=b'],
]

const superjson = partsOf('json.user.email')

export const rows: readonly CostRow[] = [
  { ...references, open: open('application/json', superjson) },
  ...rowsByType.flatMap(([row, type]) => [
    { ...row, open: open(type, oneName) },
    {
      ...row,
      name: `${row.name}, by seven names`,
      open: open(type, sevenNames),
    },
  ]),
]
