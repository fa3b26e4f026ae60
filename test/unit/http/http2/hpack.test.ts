import { describe, expect, test } from 'vitest'
import { HpackDecoder } from '../../../../proxy/http/http2/hpack/decoder.ts'
import { HpackEncoder } from '../../../../proxy/http/http2/hpack/encoder.ts'

function bytes(hex: string): Buffer {
  return Buffer.from(hex.replaceAll(' ', ''), 'hex')
}

describe('lists of fields are decoded as in the examples of RFC 7541', () => {
  test.each([
    [
      'without the code of Huffman (C.3)',
      '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
      '8286 84be 5808 6e6f 2d63 6163 6865',
      '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
    ],
    [
      'with it (C.4)',
      '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
      '8286 84be 5886 a8eb 1064 9cbf',
      '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
    ],
  ])('%s', (_, first, second, third) => {
    const decoder = new HpackDecoder(16_384)
    const get = [':method', 'GET', ':scheme', 'http', ':path', '/', ':authority', 'www.example.com']
    expect(decoder.decode(bytes(first))).toEqual(get)
    expect(decoder.decode(bytes(second))).toEqual([...get, 'cache-control', 'no-cache'])
    expect(decoder.decode(bytes(third))).toEqual([
      ...[':method', 'GET', ':scheme', 'https', ':path', '/index.html', ':authority', 'www.example.com'],
      ...['custom-key', 'custom-value'],
    ])
  })
})

test.each([
  ['index 0', '80'],
  ['an index beyond both tables', 'be'],
  ['an index that does not end', 'ff ff ff ff'],
  ['an index that is too large', 'ff ff ff ff ff ff ff 0f'],
  ['a name that does not end', '40 05 61 62'],
  ['a field without a value', '41'],
  ['dynamic table size above the limit', '3f e2 1f'],
  ['another size of the table after a field', '82 20'],
  ['a text that ends in zeros', '41 81 00'],
  ['a text that ends in more than seven bits of padding', '41 83 1f ff ff'],
  ['a text with the end of text in it', '41 84 ff ff ff ff'],
])('the HPACK block %s is an error', (_, block) => {
  expect(() => new HpackDecoder(16_384).decode(bytes(block))).toThrow()
})

test('fields of a list up to its limit are kept, and the next one is decoded', () => {
  const decoder = new HpackDecoder(100)
  const long = Buffer.concat([bytes('40 01 61 32'), Buffer.alloc(50, 'x')])
  expect(decoder.decode(long)).toEqual(['a', 'x'.repeat(50)])
  // Each byte refers to the field again.
  expect(decoder.isTooLarge).toBe(false)
  expect(decoder.decode(Buffer.alloc(10_000, 0xbe))).toEqual(['a', 'x'.repeat(50)])
  expect(decoder.isTooLarge).toBe(true)
  expect(decoder.decode(bytes('be'))).toEqual(['a', 'x'.repeat(50)])
})

test('of the fields beyond the limit of a list, the first short content type is kept', () => {
  const decoder = new HpackDecoder(100)
  const long = Buffer.concat([bytes('40 01 61 7f 49'), Buffer.alloc(200, 'x')])
  const kept = ['content-type', 'b']
  expect(decoder.decode(Buffer.concat([long, bytes('5f 01 62 5f 01 63 be bf')]))).toEqual(kept)
  expect(decoder.isTooLarge).toBe(true)
  const longType = Buffer.concat([bytes('1f 10 7f 49'), Buffer.alloc(200, 'y')])
  expect(decoder.decode(Buffer.concat([long, longType]))).toEqual([])
  expect(decoder.decode(Buffer.concat([long, longType, bytes('1f 10 01 62')]))).toEqual(kept)
})

test('a block that takes more from the table than the table can hold is too large', () => {
  const decoder = new HpackDecoder(16_384)
  const value = 'x'.repeat(3900)
  const withField = Buffer.concat([bytes('40 01 61 7f bd 1d'), Buffer.from(value)])
  expect(decoder.decode(withField)).toEqual(['a', value])
  expect(decoder.decode(bytes('be'))).toEqual(['a', value])
  expect(decoder.isTooLarge).toBe(false)
  // Two of these bytes would expand to 7,800 bytes, and four to a whole list.
  expect(decoder.decode(bytes('be be 82'))).toEqual(['a', value])
  expect(decoder.isTooLarge).toBe(true)
  // Fields written out in the block may take more than the table holds.
  const written = Buffer.concat([bytes('00 01 61 7f bd 1d'), Buffer.from(value)])
  expect(decoder.decode(Buffer.concat([written, written, bytes('be 82')]))).toHaveLength(8)
  expect(decoder.isTooLarge).toBe(false)
})

test('names that literals take from the table count towards that, and values that they write do not', () => {
  const decoder = new HpackDecoder(16_384)
  const name = 'x'.repeat(3900)
  const withField = Buffer.concat([bytes('40 7f bd 1d'), Buffer.from(name), bytes('01 61')])
  expect(decoder.decode(withField)).toEqual([name, 'a'])
  // A literal that is not put into the table, one that is, and one that never may be: three bytes each with an empty value.
  const literals = ['0f 2f 00', '7e 00', '1f 2f 00']
  for (const literal of literals) {
    expect(decoder.decode(bytes(literal))).toEqual([name, ''])
    expect(decoder.isTooLarge).toBe(false)
    expect(decoder.decode(bytes(`${literal} ${literal} 82`))).toEqual([name, ''])
    expect(decoder.isTooLarge).toBe(true)
  }
  const short = new HpackDecoder(16_384)
  short.decode(bytes('40 03 78 2d 61 01 61'))
  const values = Buffer.concat(
    Array.from({ length: 15 }, () => [bytes('0f 2f 7f f1 06'), Buffer.alloc(1_008, 'v')]).flat(),
  )
  expect(short.decode(values)).toHaveLength(30)
  expect(short.isTooLarge).toBe(false)
})

test('a repeated header takes one byte from the third time on, and a sensitive one never does', () => {
  const encoder = new HpackEncoder()
  const sizes = (fields: readonly string[]): number[] =>
    Array.from({ length: 4 }, () => encoder.encode(0, undefined, fields).length)
  const [first = 0, second = 0, ...later] = sizes(['x-kept', 'value'])
  expect(second).toBe(first)
  expect(later).toEqual([1, 1])
  const cookie = sizes(['set-cookie', 'session=1'])
  expect(new Set(cookie).size).toBe(1)
  // RFC 7541 section 6.2.3: never indexed, neither here nor by proxies further on.
  expect((encoder.encode(0, undefined, ['set-cookie', 'session=1'])[0] ?? 0) & 0xf0).toBe(0x10)
})

test('an encoded header list decodes to the same list, whatever the sizes of the table', () => {
  const encoder = new HpackEncoder()
  const decoder = new HpackDecoder(1_000_000)
  for (let round = 0; round < 500; round++) {
    if (round % 97 === 0) encoder.resize(round % 2 === 0 ? 4096 : (round * 7) % 300)
    const fields = Array.from({ length: 1 + (round % 30) }, (_, i) => [
      `x-${(round * 31 + i * 7) % 90}`,
      'v'.repeat(((round >> 2) * i) % 700) + String((round >> 3) % 5),
    ]).flat()
    expect(decoder.decode(encoder.encode(0, 200, fields))).toEqual([':status', '200', ...fields])
  }
})
