import { createHmac } from 'node:crypto'
import { wallClockMs } from '../../support/calendar/wall-clock.ts'

export const secret = 'a secret of thirty-two bytes, at least'

/** Credentials that some backend accepts, in their usual spelling, with their owner. */
export type Known = { readonly client: string; readonly scheme: string; readonly word: string }

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

function token(sub: string, exp: number): string {
  const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ sub, exp, aud: 'app' })}`
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

const basic = (text: string): string => Buffer.from(text).toString('base64')
const seconds = Math.floor(wallClockMs() / 1000)

/** Makes a token in the form of Fernet: a byte 128 and a time come first. */
const fernetOf = (text: string): string =>
  Buffer.from(`\x80\0\0\0\0fff${text}`, 'latin1').toString('base64url')

export const encoded = {
  first: fernetOf('first \xfb\xff\xbe of two, which is long enough to be one    '),
  second: fernetOf('second\xfb\xff\xbe of two, which is long enough to be one    '),
  // With padding, and so with spare bits.
  third: fernetOf('third of three, which is long enough to be one'.padEnd(50)),
}
export const tokens = [
  'tok-0123456789abcdef',
  '17|AbCdEf0123456789',
  '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b',
]

export const known: readonly Known[] = [
  { client: 'alice', scheme: 'Bearer', word: token('alice', seconds + 3600) },
  { client: 'bob', scheme: 'Bearer', word: token('bob', seconds + 7200) },
  { client: 'expired', scheme: 'Bearer', word: token('expired', seconds - 2) },
  ...tokens.map((word) => ({ client: word, scheme: 'Bearer', word })),
  ...Object.entries(encoded).map(([client, word]) => ({ client, scheme: 'Bearer', word })),
  ...['alice:secret', 'user:a:b c', 'j:p\u00e4ss', 'someone@example.com:0123456789'].map((client) => ({
    client,
    scheme: 'Basic',
    word: basic(client),
  })),
]

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/'
const junk = '!~=#$%&*@(){}[]|<>?^`\\"\',;:. -_+/'
const schemes = [
  'Bearer',
  'bearer',
  'Basic',
  'BASIC',
  'Token',
  'JWT',
  'Foo',
  'x',
  'Digest',
  'ApiKey',
  'Negotiate',
]

export type Random = () => number

function pick<T>(random: Random, values: ArrayLike<T>): T {
  const value = values[Math.floor(random() * values.length)]
  if (value === undefined) throw new Error('nothing to choose from')
  return value
}

function text(random: Random, characters: string, most: number): string {
  return Array.from({ length: Math.floor(random() * (most + 1)) }, () => pick(random, characters)).join('')
}

function insert(random: Random, word: string, piece: string, from = 0): string {
  const at = from + Math.floor(random() * (word.length - from + 1))
  return word.slice(0, at) + piece + word.slice(at)
}

type Spelling = { before: string; scheme: string; blank: string; word: string; after: string }

/** Changes after which some backend still accepts the credentials. */
const changes: readonly ((spelling: Spelling, random: Random) => void)[] = [
  (s, random) => (s.word = insert(random, s.word, text(random, junk, 4))),
  (s, random) => (s.word = insert(random, s.word, text(random, junk, 6), s.word.lastIndexOf('.') + 1)),
  (s, random) =>
    (s.word += `${pick(random, ['', '=', '==', '====', '!='])}${text(random, alphabet + junk, 12)}`),
  (s, random) => (s.word = text(random, '=!~*#', 5) + s.word),
  (s, random) =>
    (s.word = insert(random, s.word, pick(random, ['Bearer ', 'Bearer ', 'bearer ', 'Bearer', 'Basic ']))),
  (s, random) => (s.word = pick(random, [',', ';', 'x', ',;']).repeat(random() * 40) + s.word),
  (s, random) => (s.word = `${text(random, alphabet, 20)}bearer${s.word}`),
  (s, random) => (s.after = `${pick(random, ',;')}${text(random, `${alphabet},;= `, 12)}`),
  (s, random) => (s.before = `Digest username=${text(random, alphabet, 5)}, `),
  (s, random) => (s.word = s.word.replace(/=+$/, pick(random, ['', '=', '==', '====']))),
  (s, random) => (s.word = s.word.replace(/[\w-](?==*$)/, pick(random, alphabet))),
  (s) => (s.word = s.word.replaceAll('-', '+').replaceAll('_', '/')),
  (s, random) =>
    (s.word = s.word.replace(/[-_+/]/g, (c) => (random() < 0.5 ? c : ('+/-_'['-_+/'.indexOf(c)] ?? c)))),
  (s, random) => (s.scheme = pick(random, schemes)),
  (s, random) => (s.scheme = text(random, 'abcXYZ-!', 7)),
  (s, random) => (s.blank = pick(random, [' ', '  ', '\t', ' \t', '\xa0', '\x85 ', ''])),
  (s, random) => (s.blank = pick(random, ['', ' ']) + unicodeBlanks(random)),
  (s, random) => (s.after = unicodeBlanks(random)),
  (s, random) => (s.after = `${pick(random, [' ', ', ', '  ', '\t'])}${text(random, alphabet + junk, 12)}`),
  (s, random) => (s.after = `, ${pick(random, schemes)} ${text(random, alphabet, 20)}`),
  (s, random) => (s.before = `${text(random, 'abcdef=', 8)} `),
  (s, random) => (s.before = `${pick(random, known).scheme} ${pick(random, known).word} `),
  (s, random) => (s.after = ` ${pick(random, known).scheme} ${pick(random, known).word}`),
  (s, random) => {
    if (s.scheme === 'Basic')
      s.word = basic(`${Buffer.from(s.word, 'base64').toString()}\0${text(random, alphabet, 8)}`)
  },
]

/** Up to eight blanks, in UTF-8, that exist only in Unicode. */
export function unicodeBlanks(random: Random): string {
  const codes = Array.from({ length: 1 + Math.floor(random() * 8) }, () =>
    pick(random, '\x85\xa0\u1680\u2003\u2028\u202f\u205f\u3000'),
  )
  return Buffer.from(codes.join('')).toString('latin1')
}

/** Credentials in a spelling that no client would use, as one character per byte. */
export function spell(random: Random): string {
  const { scheme, word } = pick(random, known)
  const spelling: Spelling = { before: '', scheme, blank: ' ', word, after: '' }
  for (let i = Math.floor(random() * 4); i >= 0; i--) pick(random, changes)(spelling, random)
  const { before, blank, after } = spelling
  return `${before}${spelling.scheme}${blank}${spelling.word}${after}`.trim()
}
