import fc from 'fast-check'
import { vectorsByTheme } from './vectors.ts'

/** The bytes of all vectors, except long ones, which would make a run slow. */
const seeds = Object.values(vectorsByTheme)
  .flat()
  .map(({ bytes }) => bytes)
  .filter((bytes) => bytes.length < 2_000)

/** Pieces that parsers stumble over. */
const pieces = [
  ...[
    '\r\n',
    '\r\n\r\n',
    '\n',
    '\r',
    '\n\n',
    '\r\r\n',
    '\0',
    ' ',
    '\t',
    '\x0b',
    '\x0c',
    '\x85',
    '\xa0',
    ';',
    ':',
    ',',
  ],
  ...[
    '0\r\n\r\n',
    '0\r\n',
    '2\r\nhi\r\n',
    '5;a=b\r\n',
    'ffffffff\r\n',
    '-1',
    '0x',
    '+',
    '_',
    '/',
    '//',
    '..',
    '%2f',
    '%00',
  ],
  ...[
    'Content-Length: 2\r\n',
    'Content-Length: 0\r\n',
    'Content-Length:',
    'Transfer-Encoding: chunked\r\n',
    'chunked',
    'identity',
  ],
  ...[
    'GET /a HTTP/1.1\r\nHost: a\r\n\r\n',
    'POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi',
    'GET ',
    'HTTP/1.0',
    'HTTP/1.1',
  ],
  ...[
    'Host: a\r\n',
    'Host:',
    'Connection: close\r\n',
    'Connection: keep-alive, x-forwarded-for\r\n',
    'Expect: 100-continue\r\n',
    'Upgrade: h2c\r\n',
  ],
  ...[
    'X-Forwarded-For: 9.9.9.9\r\n',
    '__proto__: a\r\n',
    'Trailer: Content-Length\r\n',
    'TE: trailers\r\n',
    ' x: y\r\n',
    'http://a',
    '*',
    '#',
    '?',
  ],
]

type Mutation = (bytes: string) => string

const place = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true })
const piece = fc.constantFrom(...pieces)
const length = fc.integer({ min: 1, max: 40 })
const byte = fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code))

const insertion = fc.tuple(place, piece).map(([at, text]) => replace(at, 0, text))
const overwriting = fc.tuple(place, piece).map(([at, text]) => replace(at, text.length, text))
const substitution = fc.tuple(place, byte).map(([at, text]) => replace(at, 1, text))
const deletion = fc.tuple(place, length).map(([at, count]) => replace(at, count, ''))
const repetition = fc.tuple(place, length).map(([at, count]) => repeat(at, count))
const splice = fc.tuple(place, fc.constantFrom(...seeds)).map(([at, text]) => replace(at, Infinity, text))

/** One change, at a place given as a fraction of the length, so that it applies to any bytes. */
const mutation = fc.oneof(insertion, insertion, overwriting, substitution, deletion, repetition, splice)

/** The bytes of a vector with a few changes. */
export const mutated: fc.Arbitrary<string> = fc
  .tuple(fc.constantFrom(...seeds), fc.array(mutation, { minLength: 1, maxLength: 4 }))
  .map(([bytes, mutations]) => mutations.reduce((changed, mutate) => mutate(changed), bytes))

function index(bytes: string, at: number): number {
  return Math.floor(at * (bytes.length + 1))
}

function replace(at: number, length: number, piece: string): Mutation {
  return (bytes) => bytes.slice(0, index(bytes, at)) + piece + bytes.slice(index(bytes, at) + length)
}

function repeat(at: number, length: number): Mutation {
  return (bytes) => {
    const start = index(bytes, at)
    return bytes.slice(0, start + length) + bytes.slice(start)
  }
}
