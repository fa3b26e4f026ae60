import fc from 'fast-check'
import { expect, test } from 'vitest'
import { HpackDecoder } from '../../proxy/http/http2/hpack/decoder.ts'
import { HpackEncoder } from '../../proxy/http/http2/hpack/encoder.ts'
import { testSeed } from '../support/random/seed.ts'
import { askPython } from './python.ts'

/*
 * python-hpack (Debian's python3-hpack) encodes lists of fields for the gateway's decoder, and decodes the output of the gateway's encoder,
 * over connections of many blocks: with and without the Huffman code, with sensitive fields, and with tables that change their size.
 */

const CONNECTIONS = Number(process.env['JUDGE_SAMPLES'] ?? 2_000)

const byte = fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code))
const name = fc.oneof(
  fc.constantFrom(
    ':path',
    ':authority',
    'accept',
    'cookie',
    'x-a',
    'x-b',
    'user-agent',
    'date',
    'authorization',
  ),
  fc.string({ unit: fc.constantFrom(...Array.from('abcxyz-09_')), minLength: 1, maxLength: 20 }),
)
const value = fc.oneof(
  fc.constantFrom('', '/', 'a', 'gzip, deflate', 'Mon, 21 Oct 2013 20:13:21 GMT'),
  fc.string({ unit: byte, maxLength: 60 }),
  // Some entries fill the table alone, and some exceed it.
  fc.integer({ min: 500, max: 5_000 }).map((length) => 'x'.repeat(length)),
)
const fields = fc.array(fc.tuple(name, value, fc.boolean()), { maxLength: 12 })
const tableSize = fc.option(fc.integer({ min: 0, max: 4096 }), { freq: 4 })
const connection = fc.array(fc.tuple(tableSize, fc.boolean(), fields), { minLength: 1, maxLength: 12 })

type Block = readonly [
  size: number | null,
  huffman: boolean,
  fields: readonly (readonly [string, string, boolean])[],
]

const connections: readonly (readonly Block[])[] = fc.sample(connection, {
  numRuns: CONNECTIONS,
  seed: testSeed(),
})

function flat(list: Block[2]): string[] {
  return list.flatMap(([fieldName, fieldValue]) => [fieldName, fieldValue])
}

/** The gateway's encoding of the same lists. */
function encodeHere(blocks: readonly Block[]): string[] {
  const encoder = new HpackEncoder()
  return blocks.map(([size, , list]) => {
    if (size !== null) encoder.resize(size)
    return encoder.encode(0, undefined, flat(list)).toString('hex')
  })
}

test('python-hpack and the gateway read what the other has encoded', () => {
  const { encoded, decoded } = askPython('hpack_codec.py', ['python3-hpack'], {
    encode: connections,
    decode: connections.map(encodeHere),
  }) as {
    readonly encoded: readonly (readonly string[])[]
    readonly decoded: readonly (readonly (readonly [string, string])[])[][]
  }

  for (const [i, blocks] of connections.entries()) {
    const decoder = new HpackDecoder(2 ** 24)
    for (const [k, [, , list]] of blocks.entries()) {
      const where = `connection ${i}, block ${k}`
      expect(decoder.decode(Buffer.from(encoded[i]?.[k] ?? '', 'hex')), where).toEqual(flat(list))
      expect(decoded[i]?.[k]?.flat(), where).toEqual(flat(list))
    }
  }
  console.log(`${connections.flat().length} blocks each way`)
})
