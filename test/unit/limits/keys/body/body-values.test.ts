import fc from 'fast-check'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { bodyKeysOf } from '../../../../../proxy/limits/keys/body/body-keys.ts'
import type { SentBody } from '../../../../../proxy/limits/keys/body/body-values.ts'
import { bodyValues, KeyBody } from '../../../../../proxy/limits/keys/body/key-body.ts'
import { MemberValues } from '../../../../../proxy/limits/keys/body/member-values.ts'
import {
  bodyNamesOf,
  BodyNames,
  type BodyPart,
} from '../../../../../proxy/limits/keys/body/names/body-names.ts'
import { unpack } from '../../../../../proxy/limits/keys/body/unpacked.ts'
import { hashedKeyOf } from '../../../../../proxy/limits/keys/partition-key.ts'
import type { Policy } from '../../../../../proxy/policy.ts'
import type { PartitionPart } from '../../../../../proxy/policy/partition.ts'
import type { UnreadKey } from '../../../../../proxy/telemetry/telemetry.ts'
import { leastTimeSync, threadCpuUs } from '../../../../support/load/least-time.ts'

const address = '192.0.2.1'

function partOf(name: string): BodyPart {
  return { kind: 'body', name, path: name.split('.') }
}

function keysOf(
  body: string | Buffer,
  type: string | string[],
  name = 'email',
  target = '/login',
  encoding?: string,
  cookies: readonly string[] = [],
) {
  const bytes = Buffer.from(body)
  const sent: SentBody = bytes.length === 0 ? { unread: 'missing' } : { bytes, isWhole: true }
  const rawHeaders = [type].flat().flatMap((line) => ['content-type', line])
  if (encoding !== undefined) rawHeaders.push('content-encoding', encoding)
  rawHeaders.push(...cookies.flatMap((line) => ['cookie', line]))
  const part = partOf(name)
  const read = new KeyBody(sent, { rawHeaders }, target, new BodyNames([part]))
  return bodyKeysOf({ partition: [part] }, () => [], read, address)
}

/** How often the request counts for each of these values, and last how often it counts by address. */
function counts(keys: ReturnType<typeof keysOf>, ...values: string[]): (number | undefined)[] {
  return [
    ...values.map((value) => keys?.requests.get(hashedKeyOf(`${value.length}:${value}`))),
    keys?.requests.get(address),
  ]
}

const json = 'application/json'
const form = 'application/x-www-form-urlencoded'

/** Makes a multipart body of these parts, each with its headers and its content. */
function multipart(parts: [string, string][], boundary = 'b', end = '\r\n'): string {
  return [
    ...parts.map(([head, content]) => `--${boundary}${end}${head}${end}${end}${content}${end}`),
    `--${boundary}--${end}`,
  ].join('')
}

const named = (name: string): string => `Content-Disposition: form-data; name="${name}"`
const ofB = 'multipart/form-data; boundary=b'

const plainUtf8 = 'Content-Type: text/plain; charset=utf-8'
const withBoundary = 'multipart/form-data; boundary='

const device = { cookie: 'd', forMs: 1, statuses: [200] } as unknown as NonNullable<Policy['device']>

describe('certain: counts for the account alone', () => {
  test.each<[string, string | Buffer, string, string?]>([
    ['JSON', '{"email":"a@x"}', json],
    ['JSON with a charset', '{"email":"a@x"}', 'application/json; charset=UTF-8'],
    ['JSON of another vendor', '{"email":"a@x"}', 'application/vnd.api+json'],
    ['escapes', '{"em\\u0061il":"\\u0061@x"}', json],
    ['letter case and blanks', '{"Email":" \\u0041@X "}', json],
    ['unseen characters', '{"email":"a\u200b\u00ad@x"}', json],
    ['nested', '{"x":{"email":"b"},"user":{"email":"a@x"}}', json, 'user.email'],
    ['a member that is merged in', '{"__proto__":{"email":"a@x"}}', json],
    ['a member that is merged in by an escaped name', '{"__pr\\u006fto__":{"email":"a@x"}}', json],
    ['a form', 'x=1&email=a%40x', form],
    ['a nested field', 'user%5Bemail%5D=a@x', form, 'user.email'],
    ['a field with a dot', 'user.email=a@x', form, 'user.email'],
    ['an item', 'user[0][email]=a@x', form, 'user.email'],
    ['an array', 'email[]=a@x', form],
    ['a multipart form', multipart([[named('email'), 'a@x']]), ofB],
    [
      'a part that states its length',
      multipart([[`${named('email')}\r\n${plainUtf8}\r\nContent-Length: 16`, 'a@x']]),
      ofB,
    ],
    ...['7bit', ' 8bit', ' binary '].map((encoding): [string, string, string] => [
      `a part in the transfer encoding${encoding}`,
      multipart([[`${named('email')}\r\nContent-Transfer-Encoding:${encoding}`, 'a@x']]),
      ofB,
    ]),
    // As .NET's HttpClient writes it.
    ['a boundary in quotes', multipart([[named('email'), 'a@x']], '4f1c-b'), `${withBoundary}"4f1c-b"`],
    ['a boundary of two words', multipart([[named('email'), 'a@x']], 'b b'), `${withBoundary}"b b"`],
    ['a part that is a file', multipart([[`${named('email')}; filename=a`, 'a@x']]), ofB],
  ])('%s', (_, body, type, name) => {
    const keys = keysOf(body, type, name)
    expect(counts(keys, 'a@x')).toEqual([1, undefined])
    expect(keys).toMatchObject({ unread: undefined, requests: { size: 1 } })
  })
})

describe('not certain: counts for the account, and by address', () => {
  test.each<[string, string | Buffer, string | string[], UnreadKey]>([
    ['JSON as a form', '{"email":"a@x"}', form, 'type'],
    ['JSON as text', '{"email":"a@x"}', 'text/plain', 'type'],
    ['no type', '{"email":"a@x"}', [], 'type'],
    ['two types', 'email=a@x', [form, json], 'type'],
    ['a list of types', '{"email":"a@x"}', `${json}, ${form}`, 'type'],
    ['UTF-16', Buffer.from('\ufeff{"email":"a@x"}', 'utf16le'), json, 'charset'],
    ['a form whose second byte is NUL', 'a\0=1&email=a@x', form, 'charset'],
    ['a multipart form after NUL', `\0\0${multipart([[named('email'), 'a@x']])}`, ofB, 'charset'],
    ['JSON after two bytes of UTF-16', Buffer.from('\xff\xfe{"email":"a@x"}', 'latin1'), json, 'charset'],
    ['UTF-16 that says so', Buffer.from('{"email":"a@x"}', 'utf16le'), `${json}; charset=utf-16`, 'charset'],
    ['a charset', '{"email":"a@x"}', `${json}; charset=iso-8859-1`, 'charset'],
    ['invalid UTF-8', Buffer.from('{"email":"a@x","x":"\xff"}', 'latin1'), json, 'charset'],
    ['a byte order mark', '\ufeff{"email":"a@x"}', json, 'syntax'],
    ['text after it', '{"email":"a@x"} x', json, 'syntax'],
    ['comments', '{/* " */"email"/**/:/*"*/"a@x"}', json, 'syntax'],
    ['single quotes', "{'email':'a@x'}", json, 'syntax'],
    ['an unquoted name', '{email:"a@x",}', json, 'syntax'],
    ['NaN', '{"x":NaN,"email":"a@x"}', json, 'syntax'],
    ['Latin-1', Buffer.from('email=\xe1@x', 'latin1'), form, 'charset'],
    ['Latin-1 that says so', 'email=%e1@x', `${form}; charset=iso-8859-1`, 'charset'],
    ['a form with a NUL in front', '\0&email=a@x&b', form, 'charset'],
    ['a form as multipart', 'email=a@x', 'multipart/form-data', 'syntax'],
    ['an object', '{"email":{"$eq":"a@x"}}', json, 'value'],
    ['an array', '{"email":["a@x"]}', json, 'value'],
    ['another boundary', multipart([[named('email'), 'a@x']], 'c'), ofB, 'syntax'],
    ['two boundaries', multipart([[named('email'), 'a@x']]), `${ofB}; boundary=c`, 'syntax'],
    ['a boundary up to a comma', multipart([[named('email'), 'a@x']]), `${withBoundary}"b,x"`, 'type'],
    ['a boundary up to a semicolon', multipart([[named('email'), 'a@x']]), `${withBoundary}"b;x"`, 'syntax'],
    ['lines of LF only', multipart([[named('email'), 'a@x']], 'b', '\n'), ofB, 'syntax'],
    [
      'base64',
      multipart([[`${named('email')}\r\nContent-Transfer-Encoding: base64`, 'YUB4']]),
      ofB,
      'encoding',
    ],
    [
      'an unknown transfer encoding',
      multipart([[`${named('email')}\r\nContent-Transfer-Encoding: 8bit, x`, 'a@x']]),
      ofB,
      'encoding',
    ],
    [
      'quoted-printable',
      multipart([[`Content-Transfer-Encoding: quoted-printable\r\n${named('email')}`, '=61@x']]),
      ofB,
      'encoding',
    ],
  ])('%s', (_, body, type, unread) => {
    const keys = keysOf(body, type)
    expect(counts(keys, 'a@x').map(Boolean)).toEqual([true, true])
    expect(keys?.unread).toBe(unread)
  })
})

/** Go and Java return a value before they have read the checksum after it. */
function withWrongEnd(packed: Buffer): Buffer {
  return Buffer.concat([packed.subarray(0, -4), Buffer.from('oops')])
}

/** Adds extra data, a name, a comment and a checksum to the header of a gzip member (RFC 1952 section 2.3). */
function withAllFields(member: Buffer): Buffer {
  const header = Buffer.concat([member.subarray(0, 10), Buffer.from('\x02\0xyname\0comment\0hc', 'latin1')])
  header[3] = 0b1_1110
  return Buffer.concat([header, member.subarray(10)])
}

describe('packed: counts for the account, and by address', () => {
  const packed: [string, Buffer, string][] = [
    ['gzip', gzipSync('{"email":"a@x"}'), 'gzip'],
    ['x-gzip in capitals', gzipSync('{"email":"a@x"}'), 'X-GZIP'],
    ['gzip without its end', gzipSync('{"email":"a@x"}').subarray(0, -4), 'gzip'],
    ['gzip with a wrong checksum', withWrongEnd(gzipSync('{"email":"a@x"}')), 'gzip'],
    [
      'gzip with a wrong checksum, in two members with all fields',
      Buffer.concat([withWrongEnd(gzipSync('{"email":')), withAllFields(withWrongEnd(gzipSync('"a@x"}')))]),
      'gzip',
    ],
    [
      'gzip with a wrong checksum, and text after it',
      Buffer.concat([withWrongEnd(gzipSync('{"email":"a@x"}')), Buffer.from('x')]),
      'gzip',
    ],
    ['deflate', deflateSync('{"email":"a@x"}'), 'deflate'],
    ['deflate with a wrong checksum', withWrongEnd(deflateSync('{"email":"a@x"}')), 'deflate'],
    ['deflate without the format of zlib', deflateRawSync('{"email":"a@x"}'), 'deflate'],
    ['br', brotliCompressSync('{"email":"a@x"}'), 'br'],
    ['zstd', zstdCompressSync('{"email":"a@x"}'), 'zstd'],
    ['gzip in br', brotliCompressSync(gzipSync('{"email":"a@x"}')), 'gzip, br'],
    ['identity besides', gzipSync('{"email":"a@x"}'), 'identity, gzip'],
    ['a coding that is not true', Buffer.from('{"email":"a@x"}'), 'gzip'],
    ['an unknown coding', Buffer.from('{"email":"a@x"}'), 'compress'],
  ]

  test.each(packed)('%s', (_, body, encoding) => {
    const keys = keysOf(body, json, 'email', '/login', encoding)
    expect(counts(keys, 'a@x')).toEqual([1, 1])
    expect(keys?.unread).toBe('encoding')
  })

  test('a wrong checksum does not raise the bound on unpacked bytes', () => {
    const members = Array.from({ length: 40 }, () => withWrongEnd(gzipSync('x'.repeat(4000))))
    expect(unpack(Buffer.concat(members), ['gzip'])).toBeUndefined()
    const broken = gzipSync('{"email":"a@x"}').fill(0xff, 10, 14)
    expect(unpack(broken, ['gzip'])).toBeUndefined()
    const truncated = Buffer.from('\x1f\x8b\x08\x1e\0\0\0\0\0\0\xff\xff', 'latin1')
    const both = Buffer.concat([withWrongEnd(gzipSync('x')), truncated])
    expect(unpack(both, ['gzip'])?.toString()).toBe('x')
  })

  test('a packed body that unpacks to more than 64 KiB counts by address', () => {
    const bomb = gzipSync(`{"x":"${'x'.repeat(10_000_000)}","email":"a@x"}`)
    expect(counts(keysOf(bomb, json, 'email', '/login', 'gzip'), 'a@x')).toEqual([undefined, 1])
  })

  // The attack: 35 bytes that unpack to 64 KiB, which took as long to read as ten other requests.
  test.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
  ])('of a short body in %s that unpacks to many times its length nothing is read', (coding, pack) => {
    const varied = Array.from({ length: 9000 }, (_, i) => (i * i * 7919).toString(36)).join(' ')
    // Of the bodies that real clients send, this one compresses best.
    const events = Array.from({ length: 700 }, (__, i) => ({
      type: 'page_view',
      at: `2026-11-26T20:00:${String(i % 60).padStart(2, '0')}Z`,
      user: `u-${i}`,
      email: 'a@x',
    }))
    for (const read of ['', 'x'.repeat(4096), varied.slice(0, 64 * 1024), JSON.stringify(events)])
      expect(unpack(pack(read), [coding])?.toString()).toBe(read)
    for (const unread of ['x'.repeat(20_000), 'x'.repeat(64 * 1024)])
      expect(unpack(pack(unread), [coding])).toBeUndefined()
  })

  // The attack: 24 bytes for which a decoder allocates 128 MiB.
  test.each([
    [13, '{"email":"a@x"}'],
    [14, undefined],
    [17, undefined],
  ])('zstd with a window of 2^(10 + %i) bytes is read as %j', (exponent, read) => {
    const content = Buffer.from('{"email":"a@x"}')
    // RFC 8878 sections 3.1.1.1 and 3.1.1.2: a frame with a window descriptor, and a raw block, which is the last.
    const head = [0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3, (content.length << 3) | 1, 0, 0]
    expect(unpack(Buffer.from([...head, ...content]), ['zstd'])?.toString()).toBe(read)
  })
})

test.each([
  ['{"email":"a","email":"b"}', json],
  ['{"email":"a","E_mail":"b"}', json],
  ['email=a&email=b', form],
  ['email=a&x=1;email=b', form],
  [
    multipart([
      [named('email'), 'a'],
      [named('EMAIL'), 'b'],
    ]),
    ofB,
  ],
  [
    multipart([
      [`Content-Disposition: form-data; name=x; name="email"`, 'a'],
      [`content-disposition:form-data;name*=UTF-8''%65mail`, 'b'],
    ]),
    ofB,
  ],
])('both of two values that a backend may take count: %s', (body, type) => {
  expect(counts(keysOf(body, type), 'a', 'b')).toEqual([1, 1, undefined])
})

test.each([
  [multipart([['Content-Disposition: form-data; name*0="em"; name*1="ail"', 'a']]), ofB],
  [multipart([["Content-Disposition: form-data; name*=UTF-8''email\r\nX: y", 'a']]), ofB],
  [multipart([[named('=?UTF-8?B?ZW1haWw=?='), 'a']]), ofB],
  [multipart([[named('=?utf-8?q?e=6Dail?='), 'a']]), ofB],
  [
    multipart([
      [`Content-Type: text/plain; charset=utf-16le\r\nX: ${'x'.repeat(5000)}\r\n${named('email')}`, 'a\0'],
    ]),
    ofB,
  ],
  ['email%00x=a', form],
  ['user_email[0]=a', form, 'user.email'],
  [multipart([['Content-Disposition: form-data; filename="f ; name="email"', 'a']]), ofB],
  ['{"email":"\\x61"}', json],
])('a name or a value as only some frameworks read it counts: %j', (body, type, name = 'email') => {
  expect(counts(keysOf(body, type, name), 'a')[0]).toBe(1)
})

test.each([
  ...["boundary*=utf-8''b", 'boundary*0=b', "boundary=a; boundary*=utf-8''%62", 'boundary*0*=x; boundary=b'],
  ...[
    'boundary=1; boundary=2; boundary=3; boundary=4; boundary=b',
    'boundary="\\b"',
    'bound"ary=b',
    'boundary=b"',
  ],
])('a multipart body whose boundary only some parsers know is refused: %s', (parameters) => {
  const body = multipart([[named('email'), 'a@x']])
  expect(keysOf(body, `multipart/form-data; ${parameters}`)).toBeUndefined()
})

test.each(['\r', '\n', '\r\n', ''])(
  'a part ends before its boundary, for Flask also after a lone CR: %j',
  (end) => {
    const body = `--b\r\n${named('email')}\r\n\r\na${end}--b\r\n${named('x')}\r\n\r\ny\r\n--b--\r\n`
    for (const type of [ofB, 'multipart/form-data', 'multipart/form-data; boundary="b,x"'])
      if (end !== '' || type !== 'multipart/form-data') expect(counts(keysOf(body, type), 'a')[0]).toBe(1)
  },
)

// Mojolicious keeps the last 8 bytes and a boundary's length back, and waits for more of the body.
test.each([
  ['a short boundary', ofB, 'b', 'zzzzzzzzz'],
  ['other bytes', ofB, 'b', 'q\nyxw1234'],
  ['a boundary in quotes', `${withBoundary}"b b"`, 'b b', 'zzzzzzzzzzz'],
  ['a boundary up to a character that it has not', `${withBoundary}b@c`, 'b', 'zzzzzzzzz'],
  ['an end without CRLF before it', ofB, 'b', 'zz--b--\r\n'],
])(
  'an account in a multipart body without an end counts as Mojolicious reads it: %s',
  (_, type, boundary, dropped) => {
    const body = `--${boundary}\r\n${named('email')}\r\n\r\na@x${dropped}`
    expect(counts(keysOf(body, type), 'a@x')[0]).toBe(1)
  },
)

// Rack takes the name of a field from these headers if no `Content-Disposition` has one: in Rails and Sinatra.
test.each<[string, string?]>([
  ['Content-ID: email'],
  ['content-id:email'],
  ['Content-ID:\r\n email'],
  ['Content-ID: em%61il'],
  ['Content-ID: user[email]', 'user.email'],
  ['Content-Type: email'],
  ['Content-Type: user[email]', 'user.email'],
  ['X: y\r\nContent-ID: email'],
  ['X-Content-ID: email'],
  ['Content-Disposition: form-data\r\nContent-ID: email'],
  ['Content-ID: email\r\nContent-Disposition: form-data'],
  ['Content-Disposition: form-data; name=""\r\nContent-Type: email'],
  ['Content-Disposition: form-data; x=Content-ID: email'],
  ['Content-Type: x Content-ID: email'],
])('a field is counted whose name is in another header than Content-Disposition: %j', (head, name) => {
  const parts: [string, string][] = [[head, 'a'], [named('x'), 'b']] // oxfmt-ignore
  expect(counts(keysOf(multipart(parts), ofB, name), 'a', 'b')).toEqual([1, undefined, undefined])
})

test('a part counts once if several of its headers have the name', () => {
  const heads = [`${named('email')}\r\nContent-ID: <email>`, `Content-ID: <email>\r\n${named('email')}`]
  for (const head of heads) {
    const keys = keysOf(multipart([[`Content-Type: text/plain\r\n${head}`, 'a@x']]), ofB)
    expect(counts(keys, 'a@x')).toEqual([1, undefined])
  }
})

test.each([
  'image/png',
  'text/plain; charset=utf-8',
  'message/rfc822',
  'application/vnd.x+json; name="é%.txt"',
])('a part of type %s is no account, and text in it is not read as a head', (type) => {
  const mail = 'Content-Type: text/plain\r\nno header\r\nContent-ID: <1@x>\r\0\r\n\r\nx'
  const parts: [string, string][] = [
    [named('email'), 'a@x'],
    [`Content-Disposition: form-data; name="file"; filename="f"\r\nContent-Type: ${type}`, mail],
  ]
  const keys = keysOf(multipart(parts), ofB)
  expect(counts(keys, 'a@x')).toEqual([1, undefined])
  expect(keys).toMatchObject({ unread: undefined, requests: { size: 1 } })
})

test.each([
  ['{"user":{"email":"b"},"user.email":"a"}', json, 'user.email'],
  ['{"user[\\u0065mail]":"a","user":{"email":"b"}}', json, 'user.email'],
  ['{"a":{"user.email":"a","user":{"email":"b"}}}', json, 'a.user.email'],
  ['{"a.user":{"email":"a"},"a":{"user":{"email":"b"}}}', json, 'a.user.email'],
  ['{"x":"&email=a&","email":"b"}', json, 'email'],
])('a second value that only some backends find counts as well: %s', (body, type, name) => {
  expect(counts(keysOf(body, type, name), 'a', 'b')).toEqual([1, 1, undefined])
})

// serde (axum, actix, Rocket) reads the members of an object from an array, in the order in which the service declares them.
test.each([
  ['["a","guess"]'],
  ['["x",null,["y"],{},"a"]'],
  ['[{"x":1},{"y":2},"a"]'],
  ['[["a","guess"],["a","guess"]]', 'email', 2],
  ['{"user":["a","guess"]}', 'user.email'],
  ['[["a","guess"]]', 'user.email'],
  ['[{"email":"a"}]', 'user.email'],
  ['{"x":{"user":["x","a"]}}', 'x.user.email'],
  ['{"x":[{"email":"a"}]}', 'x.user.email'],
  ['[{"user":["a"]}]', 'x.user.email'],
  ['[[["a"]]]', 'x.user.email'],
  ['["x",7,"y"]', 'id', 1, '7'],
])(
  'a member that is read from an array counts, and the request by address: %s',
  (body, name = 'email', times = 1, value = 'a') => {
    const keys = keysOf(body, json, name)
    expect(counts(keys, value)[0]).toBe(times)
    expect(keys?.requests.get(address)).toBeGreaterThan(0)
    expect(keys).toMatchObject({ unread: 'missing' })
    expect(keys?.extra.has(hashedKeyOf(`${value.length}:${value}`))).toBe(true)
  },
)

test.each<[string, string?]>([
  ['{"tags":["a","b"],"email":"x"}'],
  ['{"email":"x","user":["a"]}'],
  ['{"user":{"tags":["a","b"],"email":"x"}}', 'user.email'],
  ['{"user":[{"tags":["a"],"email":"x"}]}', 'user.email'],
  ['{"tags":["a"],"email":"b","user":{"email":"x"}}', 'user.email'],
  ['{"users":["a"],"user":{"email":"x"}}', 'user.email'],
  ['{"a":[{"email":"x"}]}', 'a.0.email'],
])('an array in another place than the object with the member is not read: %s', (body, name) => {
  expect(counts(keysOf(body, json, name), 'x', 'a', 'b')).toEqual([1, undefined, undefined, undefined])
})

test('a batch counts for the accounts in it alone, and long lists are not refused', () => {
  const batch = ['a', 'b'].map((email) => ({ user: { email, tags: ['x'] } }))
  const keys = keysOf(JSON.stringify(batch), json, 'user.email')
  expect(counts(keys, 'a', 'b')).toEqual([1, 1, undefined])
  expect(keys).toMatchObject({ unread: undefined, requests: { size: 2 } })
  const numbers = Array.from({ length: 2000 }, (_, i) => i)
  expect(keysOf(JSON.stringify(numbers), json)?.requests.size).toBe(33)
  expect(
    keysOf(JSON.stringify(numbers.map((id) => ({ email: `a${id}` }))), json, 'user.email')?.requests.size,
  ).toBe(33)
})

test.each(['{"x":NaN,"email":"a\\n"}', '\ufeff{"email":"a\\t"}', '{"email\\n":"a",}'])(
  'escapes of controls are controls in broken JSON, too: %j',
  (body) => {
    expect(counts(keysOf(body, json), 'a')[0]).toBeGreaterThan(0)
  },
)

test.each([
  ['Rack', '--b\r\nContent-Disposition: form-data; name="email"\n\n folded\r\n\r\na\r\n--b--'],
  ['PHP', '--b\r\nContent-Disposition: form-data; name="email"\r\nX: y\na'],
  ['PHP', '--b\r\nContent-Disposition: form-data; na\nme="email"\r\n\r\na\r\n--b--'],
  ['PHP', '--b\r\nContent-Disposition: form-data; name=em\nail\r\n\r\na\r\n--b--'],
  ['PHP', '--b\r\nContent-Disposition: form-data; name=em\nail\r\nX: y\r\n\r\na\r\n--b--'],
  ['Django', "--b\r\nContent-Disposition: form-data; name*=UT F-8''email\r\nX: y\r\n\r\na\r\n--b--"],
  ['Flask', '--b\r\nContent-Disposition: form-data; name* ="em"; name*1="ail"\r\n\r\na\r\n--b--\r\n'],
  ['Flask', '--b\r\nContent-Disposition: form-data; name="em"; name*1="ail"\r\n\r\na\r\n--b--\r\n'],
  ['Flask', '--b\r\nContent-Disposition\v: form-data; name="email"\r\n\r\na\r\n--b--\r\n'],
  ['Flask', '--b\r\nContent-Disposition\r\n : form-data; name="email"\r\n\r\na\r\n--b--\r\n'],
  ['email.message', '--b\r\nContent-Disposition: form-data; name*1="ail"; name*0="em"\r\n\r\na\r\n--b--\r\n'],
  ['@fastify/busboy', "--b\r\nContent-Disposition: form-data; name*=UTF-8'email\r\n\r\na\r\n--b--\r\n"],
  ['Rack', '--b\r\nContent-Disposition: f}rm-data; name="x{; name="email"\r\n\r\na\r\n--b--\r\n'],
  ['PHP', '--b\r\nContent-Disposition: ; name== "email"\r\nContent-Type: text/plain\r\n\r\na\r\n--b--'],
  ['Flask 3 and formidable', multipart([['Content-Disposition: form-data; name=email/x', 'a']])],
  ['Flask 3', multipart([['Content-Disposition: form-data; name=email\x01x', 'a']])],
  ['Flask 3', multipart([["Content-Disposition: form-data; name*=utf-8''email/x", 'a']])],
  ['Flask 3', multipart([['Content-Disposition: form-data; name*0=em/x; name*1=ail/y', 'a']])],
  ['formidable', multipart([['Content-Disposition: form-data; name=em\x01ail(x', 'a']])],
  ['h3', multipart([[named('em"ail'), 'a']])],
  ['h3', multipart([[named('"email'), 'a']])],
  ['h3', multipart([[`Content-Disposition: form-data; name="e"mail\r\nContent-Type: text/plain`, 'a']])],
  ['Django and Starlette', multipart([['Content-Disposition: form-data; name\x1c="email"', 'a']])],
  ['Django', multipart([["Content-Disposition: form-data; name*\x1f=utf-8''email", 'a']])],
  ['Django', multipart([['Content-Disposition: form-data; name\u2003="email"', 'a']])],
])('the content of a part counts where only %s finds it: %j', (_, body) => {
  expect(counts(keysOf(body, ofB), 'a')[0]).toBe(1)
})

test.each(["name*=UTF-8;''email", "name*=UTF-8'e;n'email", "name*0*=UTF-8;''email"])(
  'a part is refused whose name goes on after a semicolon, as in Flask: %s',
  (parameter) => {
    const part = (sent: string): string => multipart([[`Content-Disposition: form-data; ${sent}`, 'a']])
    expect(keysOf(part(parameter), ofB)).toBeUndefined()
    expect(counts(keysOf(part("name*=UTF-8'en'email; filename*=UTF-8''x;"), ofB), 'a')[0]).toBe(1)
    expect(counts(keysOf(part('name*0=em; name*1=ail'), ofB), 'a')[0]).toBe(1)
  },
)

test.each([
  'email=\xe1nna',
  'email=\xe1\xee\xee\xe1',
  'email=anna\xa6x=1',
  '\xe5mail=anna',
  'x=1\xa6email\xbdanna',
  'email=%6\xb1nna',
])('an account in a form counts as formidable reads it, without the eighth bits: %j', (text) => {
  expect(counts(keysOf(Buffer.from(text, 'latin1'), form), 'anna')).toEqual([1, 1])
})

test('a form with letters beyond ASCII counts once for its account, and as formidable reads it', () => {
  expect(counts(keysOf('email=ána', form), 'ana', 'c!na')).toEqual([1, 1, undefined])
})

test('the content of a part counts without the two bytes that h3 drops before a boundary in its line', () => {
  for (const end of ['xy--', 'x\n--', '\r\n--']) {
    const body = `--b\r\n${named('email')}\r\n\r\nanna${end}b\r\n${named('x')}\r\n\r\n1\r\n--b--`
    expect(counts(keysOf(body, ofB), 'anna', 'annaxy')[0], JSON.stringify(end)).toBe(1)
  }
})

test.each([
  `--b\r\n${named('email').replace('Dis', 'Dis\n')}\r\n\r\nanna\r\n--b--\r\n`,
  `--b\r\n${named('email').replace('-', '\r-\n')}\r\n\r\nanna\r\n--b--\r\n`,
  `--b\r\n${named('email')}\r\n\r\nannax-\n-b\r\n${named('x')}\r\n\r\n1\r\n--b--`,
])('a multipart body is refused in which h3 joins the words that others look for: %j', (body) => {
  expect(keysOf(body, ofB)).toBeUndefined()
})

test('a name counts that h3 joins', () => {
  const head = 'Content-Disposition: form-data; na\nme="email"; x=":"'
  expect(counts(keysOf(multipart([[head, 'anna']]), ofB), 'anna')[0]).toBe(1)
})

test('line ends in the content of a part are not refused', () => {
  const lines = 'first\nsecond\r--\nthird'
  expect(
    counts(
      keysOf(
        multipart([
          [named('email'), 'anna'],
          [named('x'), lines],
        ]),
        ofB,
      ),
      'anna',
    ),
  ).toEqual([1, undefined])
})

test('a boundary of more than 70 characters is refused', () => {
  for (const [length, count] of [
    [70, 1],
    [71, undefined],
  ] as const) {
    const boundary = '-'.repeat(length)
    const keys = keysOf(
      multipart([[named('email'), 'anna']], boundary),
      `multipart/form-data; boundary=${boundary}`,
    )
    expect(keys && counts(keys, 'anna')[0]).toBe(count)
  }
})

test('a line counts as the end of a part to Rack only if nothing is after the boundary', () => {
  expect(
    counts(keysOf('--b\r\nContent-Disposition: form-data; name=email\r\n\r\na--bb--b\r\n', ofB), 'a--bb')[0],
  ).toBe(1)
})

test('base64 without its last block counts, which is what Koa has of it', () => {
  const body = multipart([[`${named('email')}\r\nContent-Transfer-Encoding: base64`, 'bnVsbA==']])
  expect(counts(keysOf(body, ofB), 'null', 'bnvs')).toEqual([1, 1, 1])
})

const inBase64 = (content: string): string =>
  multipart([[`${named('email')}\r\nContent-Transfer-Encoding: base64`, content]])

test.each([
  ...[
    'anna=-=-=-',
    '8J+YgA=-=',
    'an=na===',
    'annaa',
    'YW5u\r\nYQ==',
    'YW5u\r\n--YQ==',
    'an-_',
    'YQ==YQ==',
    ' YQ==',
    '=',
    'a@x',
  ],
])('base64 that readers decode differently is refused: %j', (content) => {
  expect(keysOf(inBase64(content), ofB)).toBeUndefined()
})

test('base64 that readers decode alike is not refused', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), fc.boolean(), (bytes, isPadded) => {
      const written = Buffer.from(bytes).toString('base64')
      expect(keysOf(inBase64(isPadded ? written : written.replaceAll('=', '')), ofB)).toBeDefined()
    }),
    { numRuns: 200 },
  )
})

test('base64 in a part that no rule counts by may be any', () => {
  const parts: [string, string][] = [
    [named('email'), 'a@x'],
    [`${named('file')}\r\nContent-Transfer-Encoding: base64`, 'anna=-=-=-'],
  ]
  expect(counts(keysOf(multipart(parts), ofB), 'a@x')).toEqual([1, undefined])
})

/** Charsets that body-parser (iconv-lite), Python, Java or Go's packages know and the gateway does not. */
const unknownCharsets = fc.constantFrom(
  ...[
    'utf-7',
    'UTF-7',
    'utf-7-imap',
    'utf-32',
    'utf-8-sig',
    'unicode_escape',
    'raw_unicode_escape',
    'hz',
    'cp037',
  ],
  ...['IBM500', 'iso-2022-jp', 'iso-2022-kr', 'punycode', 'idna', 'utf-16x', 'x'],
)
const parameters = fc.constantFrom<(charset: string) => string>(
  (charset) => `charset=${charset}`,
  (charset) => `Charset = "${charset}"`,
  (charset) => `charset*=utf-8''${charset}`,
  (charset) => `charset*0=${charset}`,
  (charset) => `charset=utf-8; charset=${charset}`,
  (charset) => `charset=${charset}; charset=utf-8`,
)

test('a body in a charset in which a name can be written in any number of ways is refused', () => {
  fc.assert(
    fc.property(unknownCharsets, parameters, (charset, parameter) => {
      const named7 = parameter(charset)
      for (const [body, type] of [
        ['{"email":"+AGE-@x"}', json],
        ['email=%2BAGE-@x', form],
        ['email=a', 'text/plain'],
        [multipart([[named('email'), '+AGE-@x']]), ofB],
      ] as const)
        expect(keysOf(body, `${type}; ${named7}`)).toBeUndefined()
      // Django also decodes the query.
      expect(keysOf('', `${form}; ${named7}`, 'email', '/login?email=%2BAGE-@x')).toBeUndefined()
      const ofPart = `${named('email')}\r\nContent-Type: text/plain; ${named7}`
      expect(keysOf(multipart([[ofPart, '+AGE-@x']]), ofB)).toBeUndefined()
    }),
    { numRuns: 60 },
  )
  for (const type of [form, ofB, 'text/plain'])
    expect(keysOf('email=%61%01%40%00', `${type}; charset=utf-16`)).toBeUndefined()
})

const legacyCharsets = fc.constantFrom(
  ...['windows-1251', 'Windows-1252', 'iso-8859-15', 'koi8-r', 'shift_jis', 'gbk', 'EUC-KR', 'big5'],
)

test('a body in a legacy charset is read if it is ASCII, and refused otherwise', () => {
  fc.assert(
    fc.property(legacyCharsets, (charset) => {
      for (const [body, type] of [
        [(account: string) => `{"email":"${account}"}`, json],
        [(account: string) => `email=${account}`, form],
        [(account: string) => multipart([[named('email'), account]]), ofB],
      ] as const) {
        const read = (account: string, target?: string): ReturnType<typeof keysOf> =>
          keysOf(Buffer.from(body(account), 'latin1'), `${type}; charset=${charset}`, 'email', target)
        expect(counts(read('a@x'), 'a@x')[0]).toBe(1)
        for (const other of ['\xe0@x', '%E0@x', '%25e0@x']) expect(read(other)).toBeUndefined()
        // Django also decodes the query.
        expect(read('a@x', '/login?email=%e0')).toBeUndefined()
      }
      // Django decodes a part, and then its bytes.
      const part = `${named('email')}\r\nContent-Transfer-Encoding: base64`
      expect(keysOf(multipart([[part, 'goF4']]), `${ofB}; charset=${charset}`)).toBeUndefined()
    }),
    { numRuns: 20 },
  )
})

test.each(['ascii', "'utf-8'", 'utf_8', 'utf8mb4', '', 'UTF8', 'binary', 'iso_8859-1'])(
  'a body is read whose charset is a word that programs write in place of UTF-8: %s',
  (charset) => {
    expect(counts(keysOf('{"email":"a@x"}', `${json}; charset=${charset}`), 'a@x')[0]).toBe(1)
    expect(counts(keysOf('email=a@x', `${form};charset=${charset}`), 'a@x')[0]).toBe(1)
    const part = `${named('email')}\r\nContent-Type: text/plain; charset=${charset || 'utf-8'}`
    expect(counts(keysOf(multipart([[part, 'a@x']]), ofB), 'a@x')[0]).toBe(1)
  },
)

test('a query beside JSON of UTF-16, in which Django decodes its escapes, could have any account', () => {
  const utf16 = Buffer.from('{"x":1}', 'utf16le')
  expect(keysOf(utf16, `${json}; charset=utf-16`, 'email', '/login?email=%61%01')).toBeUndefined()
  expect(keysOf(utf16, `${json}; charset=utf-16`, 'email', '/login?x=1')).toBeDefined()
})

test.each([
  ['text/plain; charset=iso-8859-1', '\xc3\xa9', ''],
  ['text/plain; charset=utf-8; charset=iso-8859-1', '\xc3\xa9', ''],
  ['text/plain; charset=iso-8859-1; charset=utf-8', '\xc3\xa9', ''],
  ['text/plain; charset=latin1', 'w6k=', 'Content-Transfer-Encoding: base64\r\n'],
  ['text/plain; charset=latin1', '=C3=A9', 'Content-Transfer-Encoding: quoted-printable\r\n'],
])(
  'a part in Latin-1 counts for its text in Latin-1, as in Flask, and in UTF-8: %s',
  (type, sent, encoding) => {
    const body = multipart([[`${encoding}Content-Type: ${type}\r\n${named('email')}`, sent]])
    expect(counts(keysOf(Buffer.from(body, 'latin1'), ofB), 'e', 'a\u00a9')).toEqual([1, 1, 1])
  },
)

test('a part in an unknown charset that no rule counts by may be any', () => {
  const parts: [string, string][] = [
    [`${named('file')}\r\nContent-Type: text/csv; charset=windows-1251`, '\xe0'],
    [named('email'), 'a@x'],
  ]
  expect(counts(keysOf(multipart(parts), ofB), 'a@x')[0]).toBe(1)
})

test.each([named('_charset_'), "Content-Disposition: form-data; name*=UTF-8''%5Fcharset_"])(
  'the field of a form that names the charset of all others: %s',
  (head) => {
    const inCharset = (charset: string): ReturnType<typeof keysOf> =>
      keysOf(multipart([[head, charset], [named('email'), 'a@x']]), ofB) // oxfmt-ignore
    expect(inCharset('utf-7')).toBeUndefined()
    expect(inCharset('IBM037')).toBeUndefined()
    expect(counts(inCharset('UTF-8'), 'a@x')).toEqual([1, undefined])
    // Browsers fill in this field on pages in these charsets.
    for (const charset of ['iso-8859-1', 'windows-1252', 'Shift_JIS']) {
      expect(counts(inCharset(charset), 'a@x')[0]).toBe(1)
      const parts: [string, string][] = [[head, charset], [named('email'), 'é@x']] // oxfmt-ignore
      expect(keysOf(multipart(parts), ofB)).toBeUndefined()
    }
  },
)

describe('a body that is not read as a whole', () => {
  const part = partOf('email')
  const long = `{"x":"${'x'.repeat(70_000)}","email":"a@x"}`

  test.each<[string, Buffer, boolean, string[]]>([
    ['is long', Buffer.from(long.slice(0, 65_536)), false, []],
    ['unpacks to a long one', gzipSync(long), true, ['content-encoding', 'gzip']],
    ...['compress', 'xz', 'lz4', 'snappy', 'X-Gzip2', 'gzip;q=1', 'utf-8, gzip', 'not-gzip', 'base64'].map(
      (coding): [string, Buffer, boolean, string[]] => [
        `is packed as ${coding}, which is not unpacked`,
        gzipSync('{}'),
        true,
        ['content-encoding', coding],
      ],
    ),
    ['is packed three times', gzipSync('{}'), true, ['content-encoding', 'gzip, gzip, gzip']],
  ])(
    'counts by address, and is refused by a rule with devices, as it could name any account: it %s',
    (...sent) => {
      const [, bytes, isWhole, headers] = sent
      const read = (): KeyBody =>
        new KeyBody(
          { bytes, isWhole },
          { rawHeaders: ['content-type', json, ...headers] },
          '/',
          new BodyNames([part]),
        )
      expect(bodyKeysOf({ partition: [part] }, () => [], read(), address)?.requests.get(address)).toBe(1)
      expect(bodyKeysOf({ partition: [part], device }, () => [], read(), address)).toBeUndefined()
    },
  )

  test.each(['utf-8', 'none', 'binary', '8bit', 'aws-chunked', 'UTF-8, identity', '', 'x'])(
    'one whose encoding names no packing counts by account as it was sent: %s',
    (coding) => {
      const latin1 = Buffer.from('email=\xe1nna', 'latin1')
      const other = bodyValues(Buffer.from('\xe1nna').toString('latin1'), false)
      for (const [type, bytes, values] of [
        [json, Buffer.from('{"email":"a@x"}'), ['a@x']],
        [form, Buffer.from('email=a%40x'), ['a@x']],
        // Readers of Latin-1 count too, as they do without an encoding.
        [form, latin1, other],
      ] as const) {
        const rawHeaders = ['content-type', type, 'content-encoding', coding]
        const body = new KeyBody({ bytes, isWhole: true }, { rawHeaders }, '/', new BodyNames([part]))
        const keys = bodyKeysOf({ partition: [part], device }, () => [], body, address)
        expect(counts(keys, ...values).every((requests) => requests !== undefined)).toBe(true)
        expect(keys?.requests.get(address)).toBe(1)
      }
    },
  )

  test('one that is read as a whole, packed or not, counts by account under both', () => {
    for (const [bytes, headers] of [
      [Buffer.from('{"email":"a@x"}'), []],
      [gzipSync('{"email":"a@x"}'), ['content-encoding', 'gzip']],
    ] as const) {
      const rawHeaders = ['content-type', json, ...headers]
      const body = new KeyBody({ bytes, isWhole: true }, { rawHeaders }, '/', new BodyNames([part]))
      expect(
        counts(
          bodyKeysOf({ partition: [part], device }, () => [], body, address),
          'a@x',
        )[0],
      ).toBe(1)
    }
  })
})

test.each([
  ['email=%e1nna@x', 'nna@x', '\xe1nna@x'],
  ['email=ann%25E1@x', 'ann@x', 'ann\xe1@x'],
  ['email=%e1nn%c3%a9@x', 'nne@x', '\xe1nn\xc3\xa9@x'],
])(
  'escapes that are not UTF-8 count as Latin-1 too, as bottle and Tomcat 9 read them: %s',
  (body, ...read) => {
    const counted = keysOf(body, form)
    for (const name of read)
      for (const value of bodyValues(Buffer.from(name).toString('latin1'), false))
        expect(counts(counted, value)[0]).toBe(1)
    // Encoded as browsers send a name: the account, and what PHP leaves of it.
    expect(keysOf('email=%c3%a1nna@x', form)?.requests.size).toBe(2)
  },
)

const latin1Letters = fc.string({
  unit: fc.constantFrom('a', 'n', '\xe1', '\xfc', '\xdf', '\xad', '\xc3\xa1'),
  minLength: 1,
  maxLength: 5,
})
const escapedBytes = (text: string): string =>
  text.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16)}`)

test.each<[string, string, (name: string) => string]>([
  ['a form', form, (name) => `email=${name}`],
  ['an escaped form', form, (name) => `email=${escapedBytes(name)}`],
  ['JSON', json, (name) => `{"email":"${name}"}`],
  ['loose JSON', json, (name) => `{'email':'${name}'}`],
  ['a multipart form', ofB, (name) => multipart([[named('email'), name]])],
])('a sign-in counts once for each account that readers of UTF-8 and Latin-1 take: %s', (_, type, bodyOf) => {
  fc.assert(
    fc.property(latin1Letters, fc.constantFrom('', '; charset=iso-8859-1'), (name, charset) => {
      const keys = keysOf(Buffer.from(bodyOf(`${name}@x`), 'latin1'), type + charset)
      expect([...(keys?.requests.values() ?? [2])].every((requests) => requests === 1)).toBe(true)
      if (charset === '') return
      const [value = ''] = bodyValues(Buffer.from(`${name}@x`).toString('latin1'), false)
      expect(counts(keys, value)[0]).toBe(1)
    }),
  )
})

test('a body that is no UTF-8 counts once for what a valid one of the same members does', () => {
  const nested = Buffer.from('{"user":"zed","x":"\xe9","p":{"user":"zed"}}', 'latin1')
  expect(counts(keysOf(nested, json, 'user'), 'zed')).toEqual([1, 1])
  const batch = Buffer.from('[{"user":"zed","x":"\xe9"},{"user":"zed"}]', 'latin1')
  expect(counts(keysOf(batch, json, 'user'), 'zed')).toEqual([2, 1])
  // A lenient parser may also read the body as a batch.
  const broken = Buffer.from('[{"user":"zed","x":"\xe9"},{"user":"zed"},]', 'latin1')
  expect(counts(keysOf(broken, json, 'user'), 'zed')[0]).toBe(2)
  // For some parsers the string ends elsewhere.
  const hidden = Buffer.from(`{"user":"zed","x":"\xe9","y":",'user':'ann'"}`, 'latin1')
  expect(counts(keysOf(hidden, json, 'user'), 'zed', 'ann').slice(0, 2)).toEqual([1, 1])
  const url = Buffer.from('{"user":"http://a/?b=c","x":"\xe9","p":{"user":"http://a/?b=c"}}', 'latin1')
  expect(counts(keysOf(url, json, 'user'), 'http://a/?b=c')).toEqual([1, 1])
  const part = partOf('user')
  const sent = { bytes: Buffer.from(`{"user":"zed","x":"\xe9","y":",'user':'ann'`, 'latin1'), isWhole: false }
  const cutOff = new KeyBody(sent, { rawHeaders: ['content-type', json] }, '/', new BodyNames([part]))
  expect(
    counts(
      bodyKeysOf({ partition: [part] }, () => [], cutOff, address),
      'zed',
      'ann',
    ),
  ).toEqual([1, 1, 1])
  // In Shift JIS and GBK the backslash is half of a character. A parser that accepts names without quotes then reads a batch of four.
  const batchInString = `[{"user":"zed","x":"\x83\\",y:1}${',{user:zed}'.repeat(3)},{z:","}]":1}]`
  expect(counts(keysOf(Buffer.from(batchInString, 'latin1'), json, 'user'), 'zed')).toEqual([4, 1])
})

test('elements of a batch in Latin-1 count one each', () => {
  const batch = Buffer.from('[{"email":"\xe1nna"},{"email":"\xe1nna"},{"email":"\xc3\xa1nna"}]', 'latin1')
  expect(counts(keysOf(batch, json), 'anna')).toEqual([3, 1])
})

const fillers = fc.constantFrom('', ' ', '/**/', '/*"email":"*/', '//\n', '//"\r\n', '#\n')

test('elements of a batch with comments count one each', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fillers, fillers, fillers, fc.constantFrom('"', "'")), {
        minLength: 1,
        maxLength: 20,
      }),
      (elements) => {
        const texts = elements.map(
          ([before, between, behind, quote]) =>
            `{${before}${quote}email${quote}${between}:${behind}${quote}anna${quote}}`,
        )
        const [requests = 0] = counts(keysOf(`[${texts.join(',')}]`, json), 'anna')
        expect(requests).toBeGreaterThanOrEqual(elements.length)
      },
    ),
  )
})

test.each(['email=a%4%31', 'email=%61%4+1', 'email=a1%5', 'email=a% 41'])(
  'an escape of one digit is a control, as WebOb reads it: %s',
  (body) => {
    expect(counts(keysOf(body, form), 'a1')[0]).toBe(1)
  },
)

test.each(['an%na', '%%%anna', 'a%n%6ea%', '%x1anna', '%4%anna%+7', '%\t2anna', 'ann%%61'])(
  'a broken escape has no percent sign, as CherryPy reads it: %s',
  (sent) => {
    expect(counts(keysOf(`email=${sent}`, form), sent === '%x1anna' ? 'x1anna' : 'anna')[0]).toBe(1)
  },
)

test('a value with a broken escape counts as Node reads it', () => {
  const pieces = ['a', 'ı', 'š', 'ǃ', 'Ʃ', '名', '%41', '%c4%b1', '%', '%5', '%zz', '+']
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 8 }), (drawn) => {
      const body = `email=x${drawn.join('')}`
      const read = new URLSearchParams(body).get('email') ?? ''
      // Bytes that are not UTF-8 are not part of any account name.
      fc.pre(!read.includes('\u{fffd}'))
      for (const client of bodyValues(Buffer.from(read).toString('latin1'), false))
        expect(counts(keysOf(body, form), client)[0]).toBe(1)
    }),
  )
})

test('equal values of a form count once, however many, and too many different ones are refused', () => {
  const once = keysOf('email=a%4%31&'.repeat(1000), form)
  expect(counts(once, 'a1')[0]).toBe(1)
  expect(once?.requests.size).toBe(keysOf('email=a%4%31', form)?.requests.size)
  const different = Array.from({ length: 300 }, (_, i) => `email=${i}&`)
  expect(keysOf(different.join(''), form)).toBeUndefined()
})

test('a form that is said to be JSON counts as a form, too', () => {
  expect(counts(keysOf('user%5bemail%5d=a', json, 'user.email'), 'a')[0]).toBe(1)
})

// ASP.NET looks for the members of a parameter under its name, and without it if no field begins so.
test.each<[body: string, type: string, name?: string]>([
  ['model.Email=a&Password=x', form],
  ['Input%5BEmail%5D=a', form],
  ['Input%2eEmail=a&Input.Email=a', form],
  [multipart([[named('model.Email'), 'a']]), ofB],
  ['Email=a', form, 'input.email'],
  ['m.Input.Email=a', form, 'input.email'],
  [multipart([[named('Email'), 'a']]), ofB, 'input.email'],
])('a field with or without the name of a model counts, and by address: %j', (body, type, name) => {
  const keys = keysOf(body, type, name)
  expect(counts(keys, 'a')).toEqual([1, 1])
  expect(keys?.extra).toEqual(new Set([hashedKeyOf('1:a')]))
})

test('a parameter of a model counts, and a cookie does not', () => {
  const ofQuery = keysOf('', [], 'email', '/login?model.Email=a')
  expect(counts(ofQuery, 'a')).toEqual([1, 1])
  const ofCookie = keysOf('', [], 'email', '/login', undefined, ['model.Email=a'])
  expect(ofCookie?.requests).toEqual(new Map([[address, 1]]))
})

test.each([
  ['without escapes', 'guests[0][email]=a&guests[][email]=b&a.b.email=c&a.b=d'],
  ['as browsers send them', 'guests%5B0%5D%5Bemail%5D=a&guests%5B%5D%5Bemail%5D=b&guests%5b%5d.email=c'],
  ['two hundred', Array.from({ length: 200 }, (_, i) => `guests%5B%5D%5Bemail%5D=a${i}`).join('&')],
])('items of a list, and members of members, are no fields of a model: %s', (_, body) => {
  expect(keysOf(body, form)?.requests).toEqual(new Map([[address, 1]]))
})

test('a field of a model does not hide a field whose value has a blank before it', () => {
  for (const body of ['model.email=a&email= a', 'email= a&model.email=a'])
    expect(keysOf(body, form)?.extra.size, body).toBe(0)
})

test('an object that the key names is no field of another model', () => {
  expect(keysOf('user[email]=a', form, 'user.email')?.requests.size).toBe(1)
})

test('a field of a model adds to what every request has, and to the account that most backends read', () => {
  const part: PartitionPart = {
    kind: 'first',
    of: [partOf('email'), { kind: 'network', ipv4: 24, ipv6: 48 }],
  }
  const read = (text: string) => {
    const sent = { bytes: Buffer.from(text), isWhole: true }
    const body = new KeyBody(
      sent,
      { rawHeaders: ['content-type', form] },
      '/',
      bodyNamesOf([{ partition: [part] }]),
    )
    return bodyKeysOf({ partition: [part] }, ({ kind }) => (kind === 'network' ? ['n'] : []), body, address)
  }
  const without = [...(read('x=1')?.requests.keys() ?? [])]
  expect(without).toHaveLength(1)
  expect([...(read('model.email=a')?.requests.keys() ?? [])]).toEqual([...without, expect.any(String)])
  const both = read('email=a&model.email=b')
  expect(both?.requests.size).toBe(2)
  expect(both?.extra.size).toBe(1)
})

test('a parameter of the query counts too', () => {
  expect(counts(keysOf('{"email":"a"}', json, 'email', '/login?email=b'), 'a', 'b')).toEqual([
    1,
    1,
    undefined,
  ])
})

// Without a php.ini, PHP's `$_REQUEST` prefers a cookie to the query and the body.
test.each<[lines: string[], name: string, values: string[]]>([
  [['email=b'], 'email', ['b']],
  [['x=1;email=b; sid=2'], 'email', ['b']],
  [['x=1', 'Email[]=%62; email=c'], 'email', ['b', 'c']],
  [['user[email]=b'], 'user.email', ['b']],
  // No backend separates cookies with `&`.
  [['x=1&email=b'], 'email', []],
])('a cookie of that name counts too: %j', (lines, name, values) => {
  const body = name === 'email' ? '{"email":"a"}' : '{"user":{"email":"a"}}'
  const keys = keysOf(body, json, name, '/login', undefined, lines)
  expect(counts(keys, 'a', ...values)).toEqual([1, ...values.map(() => 1), undefined])
  expect(keys?.requests.size).toBe(1 + values.length)
  const alone = keysOf('', [], name, '/login', undefined, lines)
  expect(counts(alone, ...values)).toEqual([...values.map(() => 1), 1])
})

test.each(['user=a', '{"user":"a"}'])('a body without the member counts by address: %s', (body) => {
  expect(keysOf(body, body.startsWith('{') ? json : form)).toEqual({
    requests: new Map([[address, 1]]),
    extra: new Set(),
    unread: 'missing',
  })
})

describe('batches', () => {
  test('each element counts by its own value, and by address without one', () => {
    const body = '[{"email":"a"},{"email":"b"},{"x":1},{"email":"a"},7]'
    expect(counts(keysOf(body, json), 'a', 'b')).toEqual([2, 1, 1])
  })

  test.each([
    ['numbered', '{"0":{"email":"a"},"1":{"email":"b"},"2":{"x":1},"3":{"email":"a"}}', 'email'],
    [
      'written by SuperJSON',
      '{"0":{"json":{"email":"a"}},"\\u0031":{"json":{"email":"b"}},"2":{},"3":{"json":{"email":"a"}}}',
      'json.email',
    ],
  ])('members of a batch of tRPC count as elements: %s', (_, body, name) => {
    expect(counts(keysOf(body, json, name), 'a', 'b')).toEqual([2, 1, 1])
  })

  test('a batch of tRPC may have other members', () => {
    expect(counts(keysOf('{"0":{"email":"a"},"email":"b","10":{"email":"a"}}', json), 'a', 'b')).toEqual([
      2,
      1,
      undefined,
    ])
    expect(counts(keysOf('{"email":"b","0":{"email":"a"}}', json), 'a', 'b')).toEqual([1, 1, undefined])
    expect(counts(keysOf('{"0":{"email":"a"},"1":{"email":"b"}}', json, '1.email'), 'a', 'b')[1]).toBe(1)
    expect(counts(keysOf('{"0x":{"email":"a"}}', json), 'a')).toEqual([undefined, 1])
    expect(counts(keysOf('{"email":"a","x":{"0":{"email":"b"}}}', json), 'a', 'b')).toEqual([
      1,
      undefined,
      undefined,
    ])
  })

  test('elements of broken batches count in the same way', () => {
    expect(counts(keysOf('[{"email":"a"},{"email":"b"},{"email":"a"},]', json), 'a', 'b')).toEqual([2, 1, 1])
  })

  test.each([
    ['101 clients', JSON.stringify(Array.from({ length: 101 }, (_, i) => ({ email: `u${i}` })))],
    ['2001 numbered elements', `{${Array.from({ length: 2001 }, (_, i) => `"${i}":{"email":"a"}`).join()}}`],
    ['2001 elements', `[${Array.from({ length: 2001 }, () => '{"email":"a"}').join()}]`],
    ['an account after 700 characters that are not seen', `{"email":"${'\u200b'.repeat(700)}a@x"}`],
    [
      'such an account after a member that ends where reading does',
      `{"email":"${'\u00ad'.repeat(1024)}","email":"${'\u00ad'.repeat(1024)}a@x"}`,
    ],
    ['9 readings of a value', `{${Array.from({ length: 9 }, (_, i) => `"email":"u${i}"`).join()}}`],
  ])('a batch of %s has too many elements', (_, body) => {
    expect(keysOf(body, json)).toBeUndefined()
  })
})

/** A field in the next part. A parser that misses the end of this part reads the field in its place. */
const decoy = '\r\n--b\r\nContent-Disposition: form-data; name="x"\r\n\r\nfoo\r\n--b--\r\n'

test.each([
  ['PHP', 'Content-Disposition: form-data; name="email"\r\n\0\r\nvictim'],
  ['PHP', 'Content-Disposition: form-data; name="em\0z\r\nail"\r\n\r\nvictim'],
  ['PHP', `Content-Disposition: form-data; name="email"\r\nX: ${'a'.repeat(5116)}\r\nvictim`],
  ['PHP', 'Content-Disposition: form-data; name="email"; a=\r\rk1\r\n--b\r\n\nvictim'],
  ['busboy', 'C\r\n--bontent-Disposition: form-data; name="email"\r\n\r\nvictim'],
  ['busboy', 'Content-Disposition: form-data; name="ema\r\n--bil"\r\n\r\nvictim'],
  ['busboy', 'Content-Disposition: form-data; name="email"\r\n\r\n--b\r\nvictim'],
  ['formidable', 'Content-Disposition: form-dat\r; name="email"\r\n\r\nvictim'],
  ['Rack', 'Content-Disposition: form-data; name="email"\n\r\nx\r\n--b\r\nX: y\r\n\r\nvictim'],
  ['Starlette', 'Content-Disposition: form-data; name="email"\r\nX: y\r\n--b\r\nvictim\r\n\r\n'],
  ['Starlette', 'Content-Disposition: form-data; name="email"\r\nC\r\n X: y\r\n\r\nvictim'],
  ['Bottle', 'Content-Disposition: form-data; name="email"\r\n \r\nX: y\r\n\r\nvictim'],
  ['some', `Content-Disposition: form-data; x="${'x'.repeat(5000)}"; name="email"\r\n\r\nvictim`],
])('a part is refused if its head has no end, or another one, to %s: %j', (_, part) => {
  expect(keysOf(`--b\r\n${part}${decoy}`, ofB)).toBeUndefined()
})

test('a part that is not UTF-8 counts for its letters in Latin-1 too, whatever its type names after the boundary', () => {
  for (const type of [ofB, `${ofB}, x`]) {
    const part = 'Content-Disposition: form-data; name="email"\r\n\r\n\xf0,'
    const body = Buffer.from(`--b\r\n${part}\r\n--b--\r\n`, 'latin1')
    expect(counts(keysOf(body, type), 'd,')[0]).toBe(1)
  }
})

test.each(['; na me="email"', '; na\r\n me="email"', '; na"me=email', '; n\\ame = email'])(
  'a parameter is a name with blanks, quotes and backslashes in it: %j',
  (parameter) => {
    const body = `--b\r\nContent-Disposition: form-data${parameter}\r\n\r\na${decoy}`
    expect(counts(keysOf(body, ofB), 'a')[0]).toBe(1)
  },
)

test('eight long values in letters of other scripts are too many to take apart', () => {
  const emails = Array.from({ length: 8 }, (_, i) => ({ email: 'é'.repeat(900) + String(i) }))
  expect(keysOf(JSON.stringify(emails), json)).toBeUndefined()
  expect(keysOf(JSON.stringify(emails.slice(0, 4)), json)?.requests.size).toBe(4)
})

test('a body may have 128 spellings of one account with characters that count for nothing', () => {
  const spelled = (count: number): string => {
    const marks = ['\u00ad', '\u200b']
    const spellings = Array.from({ length: count }, (_, i) =>
      Array.from(i.toString(2), (digit) => marks[Number(digit)]).join(''),
    )
    return JSON.stringify(spellings.map((marked) => ({ email: `a${marked}` })))
  }
  expect(counts(keysOf(spelled(128), json), 'a')).toEqual([128, undefined])
  expect(keysOf(spelled(129), json)).toBeUndefined()
})

test('values with letters beyond ASCII are decomposed up to 16 KiB, 160 bytes for each of a hundred clients', () => {
  const part = partOf('email')
  const sent: SentBody = { unread: 'missing' }
  const body = new KeyBody(sent, { rawHeaders: [] }, '/login', new BodyNames([part]))
  const texts = Array.from({ length: 200 }, (_, i) =>
    Buffer.from('é'.repeat(78) + String(i)).toString('latin1'),
  )
  const taken = texts.filter((text) => body.readingsOf({ text }, part).usual.length === 1)
  expect(taken.length).toBeGreaterThanOrEqual(100)
  expect(taken.join('').length).toBeLessThanOrEqual(16 * 1024)
  // Plain names cost little.
  expect(body.readingsOf({ text: 'a@example.com' }, part).usual).toEqual(['a@example.com'])
})

test('a letter that is many to who compares names weighs as much as these', () => {
  const part = partOf('email')
  const body = new KeyBody({ unread: 'missing' }, { rawHeaders: [] }, '/login', new BodyNames([part]))
  const compared = Array.from({ length: 100 }, (_, i) => {
    // U+FDFA decomposes into 18 letters.
    const text = Buffer.from('\ufdfa'.repeat(100) + String(i)).toString('latin1')
    const values = body.readingsOf({ text }, part).usual
    return values.length === 1 ? values.join('').length : 0
  })
  expect(compared[0]).toBeGreaterThan(1000)
  expect(compared.reduce((sum, length) => sum + length, 0)).toBeLessThan(64 * 1024)
})

test('names of form fields with an equals sign in brackets are compared up to 256 times', () => {
  const body = (names: number): string => `${'x[a=b]=1&'.repeat(names)}email[a=b]=c`
  expect(counts(keysOf(body(255), 'application/x-www-form-urlencoded'), 'c', 'b]=c')).toEqual([
    1,
    1,
    undefined,
  ])
  expect(keysOf(body(256), 'application/x-www-form-urlencoded')).toBeUndefined()
})

describe('a form has at most 1024 fields', () => {
  const most = 'x=1&'.repeat(1023)

  test.each([
    ['of another name', 'x=1&'],
    ['of the account', 'email=a&'],
    ['between semicolons', 'x;y=1;&'],
    ['of a model', 'model.x=1&'],
  ])('%s', (_, further) => {
    expect(counts(keysOf(`${most}email=a`, form), 'a')).toEqual([1, undefined])
    expect(keysOf(`${most}${further}email=a`, form)).toBeUndefined()
    expect(keysOf(`${most}email=a&${further}`, form)).toBeUndefined()
  })

  test.each(['a', 'a <b@c.d>', 'a<b>'])(
    'JSON counts by address too, or is refused by a rule with devices, if a text in it looks like a form of more; for the account %s',
    (email) => {
      const page = '<td style="padding:0;">&nbsp;</td>'.repeat(1100)
      const body = JSON.stringify({ page: `&email=${email}&${page}` })
      expect(keysOf(body, json)).toMatchObject({ unread: 'value' })
      expect(counts(keysOf(body, json), email)).toEqual([1, 1])
      expect(keysWithDevices(body, json)).toBeUndefined()
      // Text in which nothing is valid JSON may well be a form.
      expect(keysOf(`{${body}`, json)).toBeUndefined()
    },
  )
})

test('a string that ends in a backslash is looked through once for comments', () => {
  const body = `{/**/"${'\\"'.repeat(32_000)}\\`
  // This once took 1500 ms.
  expect(leastTimeSync(150_000, () => threadCpuUs(() => keysOf(body, json)))).toBeLessThan(150_000)
})

describe('64 KiB of a multipart body are looked at once or twice, whatever is in them', () => {
  const head = 'Content-Disposition: form-data; '
  const filled = (text: string): string => text.repeat(60_000 / text.length)
  test.each([
    ['names', head + filled('name="\u00ff";')],
    ['escapes in names', head + filled('name=%2525;')],
    ['other headers with names', filled('content-id:email\r\n')],
    ['other headers with one letter of a name', filled('content-id:e')],
    ['other headers with names to decode', filled('content-id:\u00ff')],
    ['other headers with brackets', filled('content-type:[1]')],
    ['other headers with line ends', filled('content-id:\n')],
    ['heads with the same end', filled('content-disposition:\nname=\u00ff;name=%;name=%25;')],
    ['charsets', `${named('email')}; ${filled('charset')}`],
    ['contents with the same end', filled(`${named('email')}\r\n base64 quoted-printable\r\n\r\n`)],
  ])('%s', (_, headers) => {
    const read = (): unknown => keysOf(multipart([[headers, 'a']]), ofB)
    // This once took 500 ms or more.
    expect(leastTimeSync(100_000, () => threadCpuUs(read))).toBeLessThan(100_000)
  })
})

/** Pieces that WordPress removes from account names before it looks them up, wherever they are and however many there are. */
const removed = fc.oneof(
  fc.constantFrom(
    '%41',
    '%40',
    '%25',
    '%\u00e91',
    '&x;',
    '&;;',
    '&amp;',
    '\u00a3',
    '<b>',
    '<b x=">">',
    '<!--x-->',
    '<script>x</script>',
  ),
  fc.integer({ min: 0, max: 255 }).map((byte) => `%${byte.toString(16).padStart(2, '0')}`),
  fc.integer({ max: 1e6 }).map((i) => `&x${i};`),
  fc.integer({ max: 1e6 }).map((i) => `<x${i}>`),
)

const typesOfNames: readonly (readonly [string, string, (name: string) => string])[] = [
  ['a form', form, (name) => `log=${encodeURIComponent(name)}&pwd=x`],
  ['JSON', json, (name) => JSON.stringify({ log: name })],
  ['a multipart form', ofB, (name) => multipart([[named('log'), name]])],
]

/** Reads a body as a rule with devices, which answers 400 where an account could be anybody's. */
function keysWithDevices(text: string, type: string, name = 'email'): ReturnType<typeof keysOf> {
  const part = partOf(name)
  const sent = { bytes: Buffer.from(text), isWhole: true }
  const body = new KeyBody(sent, { rawHeaders: ['content-type', type] }, '/', new BodyNames([part]))
  return bodyKeysOf({ partition: [part], device }, () => [], body, address)
}

function keysOfName(
  name: string,
  [, type, bodyOf]: (typeof typesOfNames)[number],
): ReturnType<typeof keysOf> {
  return keysWithDevices(bodyOf(name), type, 'log')
}

test.each(typesOfNames)('an account counts as WordPress cleans it: %s', (...type) => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(5), removed), { minLength: 1, maxLength: 3 }), (pieces) => {
      const name = pieces.reduce((text, [at, piece]) => text.slice(0, at) + piece + text.slice(at), 'admin')
      // Pieces inserted into one another leave other names.
      fc.pre(cleanedByWordPress(name) === 'admin')
      expect(counts(keysOfName(name, type), 'admin')).toEqual([1, undefined])
    }),
  )
})

/** Cleans a name as `sanitize_user` of WordPress 6 does, except for names with tags that contain more than letters. */
function cleanedByWordPress(name: string): string {
  return name
    .replace(/<script>.*?<\/script>|<[^>]*(?:">">|>)/g, '')
    .replaceAll('\u00a3', '')
    .replaceAll('\u00e9', 'e')
    .replace(/%[\da-f]{2}/gi, '')
    .replace(/&.+?;/g, '')
}

test.each([
  // WordPress cleans a name at the sign-in, and again at the lookup.
  'ad%4%411min',
  'ad&<b>amp;min',
  'ad%<b></b>41min',
  'ad&x&y;&z;min',
  'admin< ',
  // WordPress removes accents before escapes.
  'ad%\u00e91min',
  'ad%e\u03011min',
  'ad%\u00e6min',
  'ad%\u20ac1min',
  '%\0\u0034\u0031admin',
])('an account counts as WordPress finds it, as which no single removal reads it: %j', (name) => {
  for (const type of typesOfNames) expect(counts(keysOfName(name, type), 'admin')).toEqual([1, undefined])
})

test.each([
  'x1 <admin@example.com>',
  'x1 < admin@example.com >',
  '"<x@y>" <admin@example.com>',
  '<admin@example.com> (<x@y>)',
  'admin@example.com (x1)',
  'x1:admin@example.com;',
  'x1: y <admin@example.com>; (z)',
  '"<x@y>": admin@example.com; (:;)',
  '"ad\\min"@example.com',
  'admin@ \t example.com',
  'x1 <admin@example\u3002com>',
  'admin@example\uff61com',
])('an account counts as the address that FastAPI or Go reads in it: %j', (name) => {
  for (const type of typesOfNames)
    expect(counts(keysOfName(name, type), 'admin@example.com')).toEqual([1, undefined])
})

test.each([
  ...Array.from(' "(),/:;<>\\', (character) => `ad${character}min@example.com`),
  'ad\u00e9min@example.com',
  '\u4e2dadmin@exam\ud83d\ude00ple.com ',
  'ad, (min@ex/ample.com',
  'a/d/m/i/n/@/e/x/a/m/p/l/e.com',
])('an account counts as the address that PHP leaves of it (FILTER_SANITIZE_EMAIL): %j', (name) => {
  for (const type of typesOfNames)
    expect(counts(keysOfName(name, type), 'admin@example.com')).toEqual([1, undefined])
})

test('an account that is no address is not cut to other characters', () => {
  expect(keysOfName('ad/min', ['JSON', json, (log) => JSON.stringify({ log })])?.requests.size).toBe(1)
})

test('an account with more addresses than are read is refused under a rule with devices', () => {
  const name = Array.from({ length: 5 }, (_, i) => `<x${i}@example.com>`).join(' ')
  for (const type of typesOfNames) expect(keysOfName(name, type)).toBeUndefined()
})

describe('what only few backends read adds charges', () => {
  const extraOf = (keys: ReturnType<typeof keysOf>, ...values: string[]): (boolean | undefined)[] =>
    values.map((value) => keys?.extra.has(hashedKeyOf(`${value.length}:${value}`)))

  test.each([
    ['as WordPress cleans it', 'ad&x;min', 'ad&x;min', 'admin'],
    ['as FastAPI reads an address', 'x <a@b.c>', 'x <a@b.c>', 'a@b.c'],
    ['as PHP sanitizes an address', 'a,b@c.d', 'a,b@c.d', 'ab@c.d'],
    ['as PHP sanitizes one with an accent', 'b\u00c1@c.d', 'ba@c.d', 'b@c.d'],
    ['as PHP sanitizes one with a wide letter', 'b\uff41@c.d', 'ba@c.d', 'b@c.d'],
    ['as WordPress writes it in German', 'm\u00fcller', 'muller', 'mueller'],
    ['as WordPress writes it in German, with a mark', 'mu\u0308ller', 'muller', 'mueller'],
    ['as WordPress writes it in Danish', 'k\u00e5re', 'kare', 'kaare'],
    ['as WordPress writes it in Serbian', '\u0111uro', 'duro', 'djuro'],
    [
      'with one character beyond the Basic Multilingual Plane for another',
      '\ud835\udcb6nna',
      'anna',
      '\u{20000}nna',
    ],
  ])('%s', (_, name, usual, extra) => {
    const keys = keysOf(JSON.stringify({ email: name }), json)
    expect(counts(keys, usual, extra)).toEqual([1, 1, undefined])
    expect(extraOf(keys, usual, extra)).toEqual([false, true])
    // Some backend may read the other member.
    for (const both of [`{"email":"${name}","email":"${extra}"}`, `{"email":"${extra}","email":"${name}"}`])
      expect(extraOf(keysOf(both, json), usual, extra)).toEqual([false, false])
    expect(counts(keysOf(`{"email":"${extra}","email":"${name}"}`, json), usual, extra)).toEqual([
      1,
      1,
      undefined,
    ])
  })

  test('a request counts for as many clients without them', () => {
    const all = (count: number, of: (i: number) => string): string =>
      Array.from({ length: count }, (_, i) => of(i)).join()
    const eight = keysOf(`{${all(8, (i) => `"email":"u${i}&x;"`)}}`, json)
    expect([eight?.requests.size, eight?.extra.size]).toEqual([16, 8])
    expect(keysOf(`{${all(9, (i) => `"email":"u${i}&x;"`)}}`, json)).toBeUndefined()
    const batch = keysOf(`[${all(100, (i) => `{"email":"u${i}\ud835\udcb6"}`)}]`, json)
    expect([batch?.requests.size, batch?.extra.size]).toEqual([200, 100])
    expect(keysOf(`[${all(101, (i) => `{"email":"u${i}\ud835\udcb6"}`)}]`, json)).toBeUndefined()
    // 3000 values, half of them cleaned, in a body that is read beside a query.
    const same = keysOf(`[${all(1500, () => '{"email":"ad&x;min"}')}]`, json, 'email', '/login?x=1')
    expect(counts(same, 'ad&x;min', 'admin')).toEqual([1500, 1500, undefined])
  })

  test('a name without a usual reading counts by address', () => {
    const keys = keysOf(JSON.stringify({ email: '\u{e0061}' }), json)
    expect(counts(keys, '\u{20000}')).toEqual([1, 1])
    expect(extraOf(keys, '\u{20000}')).toEqual([true])
  })

  test('more than 24 of an item are too many', () => {
    const values = new MemberValues('')
    values.startItem(0, 0)
    for (let i = 0; i < 24; i++) values.add(`extra${i}`, true)
    for (let i = 0; i < 8; i++) values.add(`usual${i}`, false)
    expect(values.isCut).toBe(false)
    values.add('extra24', true)
    expect(values.isCut).toBe(true)
  })

  test('a key of several parts is extra if one of them is', () => {
    const parts = [partOf('email'), partOf('team')]
    const sent = { bytes: Buffer.from('{"email":"ad&x;min","team":"a"}'), isWhole: true }
    const body = new KeyBody(sent, { rawHeaders: ['content-type', json] }, '/', new BodyNames(parts))
    const keys = bodyKeysOf({ partition: parts }, () => [], body, address)
    const keyOf = (email: string): string => hashedKeyOf(`${email.length}:${email}1:a`)
    expect(new Set(keys?.requests.keys())).toEqual(new Set([keyOf('ad&x;min'), keyOf('admin')]))
    expect([...(keys?.extra ?? [])]).toEqual([keyOf('admin')])
  })
})

test('a tag is what PHP takes for one', () => {
  expect(counts(keysOf('email=ann%3Cb%3Ea', form), 'anna')).toEqual([1, undefined])
  // After a blank, PHP reads text instead of a tag. A plus sign in a form is a blank.
  for (const sign of ['+', '%20'])
    expect(counts(keysOf(`email=ann%3C${sign}b%3Ea`, form), 'anna')).toEqual([undefined, undefined])
  expect(counts(keysOf('email=ann%3C%2Bb%3Ea', form), 'anna')).toEqual([1, undefined])
})

test('an account that is too long to be cleaned counts by address too; under a rule with devices it is refused', () => {
  const name = `${'<b>'.repeat(1000)}admin`
  expect(counts(keysOf(JSON.stringify({ email: name }), json), 'admin')[1]).toBe(1)
  for (const type of typesOfNames) expect(keysOfName(name, type)).toBeUndefined()
})

test.each([
  ['\xa2ustomer', 'customer'],
  ['\x80dmund', 'edmund'],
  ['gar\xf0a', 'gardha'],
  ['\xec\x8awap', 'iswap'],
])('a name that is no UTF-8 counts as WordPress writes it: %j', (name, read) => {
  const body = Buffer.from(`email=${name}`, 'latin1')
  expect(counts(keysOf(body, form), read)[0]).toBe(1)
  expect(counts(keysOf(`email=${escapedBytes(name)}`, form), read)[0]).toBe(1)
  // With further readings, the owners of such names would not be recognized by their devices.
  expect(keysOf(`email=${encodeURIComponent('garða')}`, form)?.requests.size).toBe(1)
})

test('any number of blanks in a name counts as one', () => {
  expect(counts(keysOf('email=anna++%09%C2%A0b', form), 'anna b')).toEqual([1, undefined])
})
