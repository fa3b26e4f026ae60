import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { waysOfSending, type WayOfSending } from '../support/http/raw-client.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { arbitraryBytes, changed, wellFormed, type BackendBytes } from '../support/random/response-bytes.ts'
import {
  differenceBetween,
  readHere,
  readWithNode,
  type Reading,
} from '../support/random/response-readings.ts'
import { runs } from '../support/random/runs.ts'

/*
 * The attack: a response that the gateway reads in one way, and a client or a proxy before it in another. An attacker's content then
 * becomes the response to another client's request. So the same bytes, in the same pieces, go to the gateway's parser and to llhttp, the
 * parser of Node's client. llhttp may accept a response that the gateway refuses, but never the reverse. Responses that both accept must be
 * the same, to the byte at which the message ends. The table lists the exceptions.
 */

type Both = { readonly here: Reading; readonly node: Reading }

type Explained = {
  /** The difference, in words. */
  readonly name: string
  readonly section: string
  /** Why the behaviour here is safe. */
  readonly why: string
  readonly example: string
  /** The result of reading the example here. */
  readonly reads: string
  readonly covers: (both: Both, bytes: string) => boolean
}

const ok = 'HTTP/1.1 200 OK\r\n'
const chunked = `${ok}Transfer-Encoding: chunked\r\n\r\n`

/** All responses that the gateway accepts and llhttp refuses or reads differently. */
const explained: readonly Explained[] = [
  {
    name: 'a length that is declared twice and is the same',
    section: 'RFC 9112 section 6.3',
    why: 'there is one way to read it, and it is passed on as one line',
    example: `${ok}Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi`,
    reads: 'hi',
    covers: ({ node }) => node.refused === 'HPE_UNEXPECTED_CONTENT_LENGTH',
  },
  {
    name: 'blanks after a chunk size, and extensions that are not tokens',
    section: 'RFC 9112 section 7.1.1',
    why: 'the size is before them and the line ends at its CRLF for all; chunks are made anew without them',
    example: `${chunked}2 ; a\r\nhi\r\n0;\r\n\r\n`,
    reads: 'hi',
    covers: ({ node }, bytes) =>
      (node.refused === 'HPE_INVALID_CHUNK_SIZE' || node.refused === 'HPE_STRICT') &&
      /\n[0-9a-fA-F]+[\t ;]/.test(bytes),
  },
  {
    name: 'a length, or an empty coding, among the trailers',
    section: 'RFC 9110 section 6.5.1',
    why: 'trailers are checked and dropped: none is ever merged into a head',
    example: `${chunked}2\r\nhi\r\n0\r\nContent-Length: 9\r\n\r\n`,
    reads: 'hi',
    covers: ({ node }, bytes) =>
      (node.refused === 'HPE_INVALID_CONTENT_LENGTH' || node.refused === 'HPE_INVALID_TRANSFER_ENCODING') &&
      /\n0+[\t ;\r][^]*\n(?:content-length|transfer-encoding):/i.test(bytes),
  },
  {
    name: 'an interim response with close, or in HTTP/1.0',
    section: 'RFC 9110 section 15.2',
    why: 'the request is still unanswered: its final response follows, whose own head decides about the connection',
    example: `HTTP/1.1 103 Early\r\nConnection: close\r\n\r\n${ok}Content-Length: 2\r\n\r\nhi`,
    reads: 'hi',
    covers: ({ here, node }) => node.refused === 'HPE_CLOSED_CONNECTION' && here.interim.length > 0,
  },
  {
    name: 'a tab after the coding',
    section: 'RFC 9110 section 5.5',
    why: 'blanks around a value are not part of it; llhttp takes a tab there for another coding and reads up to the close',
    example: `${ok}Transfer-Encoding: chunked\t\r\n\r\n2\r\nhi\r\n0\r\n\r\n`,
    reads: 'hi',
    covers: (_, bytes) => /\ntransfer-encoding:[\t ]*chunked *\t[\t ]*\r\n/i.test(bytes),
  },
]

const waysByName = Object.keys(waysOfSending) as WayOfSending[]
const way = fc.record({ name: fc.constantFrom(...waysByName), seed: fc.nat() })

function cut(bytes: string, { name, seed }: { name: WayOfSending; seed: number }): Buffer[] {
  return waysOfSending[name](bytes, seededRandom(seed)).map((piece) => Buffer.from(piece, 'latin1'))
}

async function readByBoth(
  { bytes, method, closes }: BackendBytes,
  pieces: readonly Buffer[],
): Promise<Both & { explanations: string[] }> {
  const both = { here: readHere(pieces, method, closes), node: await readWithNode(pieces, method, closes) }
  const explanations = explained.filter(({ covers }) => covers(both, bytes)).map(({ name }) => name)
  return { ...both, explanations }
}

/** The share of the responses that both, only one, or neither read to the end. */
type Share = { both: number; here: number; node: number; none: number }

/** @returns the shares, from 0 to 1 */
async function compare(sent: fc.Arbitrary<BackendBytes>, times: number): Promise<Share> {
  const count: Share = { both: 0, here: 0, node: 0, none: 0 }
  await fc.assert(
    fc.asyncProperty(sent, way, async (backend, pieces) => {
      const { here, node, explanations } = await readByBoth(backend, cut(backend.bytes, pieces))
      const isReadHere = here.endedIn !== undefined
      const isReadByNode = node.endedIn !== undefined
      count[isReadHere ? (isReadByNode ? 'both' : 'here') : isReadByNode ? 'node' : 'none']++
      if (explanations.length === 0)
        expect(differenceBetween(here, node), JSON.stringify({ here, node })).toBe(undefined)
    }),
    { numRuns: runs(times) },
  )
  const all = count.both + count.here + count.node + count.none
  return { both: count.both / all, here: count.here / all, node: count.node / all, none: count.none / all }
}

describe('compared with llhttp', () => {
  test('a well-formed response is read by both, with the same result', async () => {
    expect(await compare(wellFormed, 2_000)).toEqual({ both: 1, here: 0, node: 0, none: 0 })
  })

  test('a response that has been changed somewhere is read with the same result, or refused here', async () => {
    const share = await compare(changed, 8_000)
    expect(share.both).toBeGreaterThan(0.15)
    expect(share.none).toBeGreaterThan(0.2)
    expect(share.here).toBeLessThan(0.05)
  })

  test('any bytes are read with the same result, or refused here', async () => {
    const share = await compare(arbitraryBytes, 6_000)
    expect(share.both).toBeGreaterThan(0.05)
  })

  test.each(explained.map((one) => [one.name, one] as const))(
    'explained: %s',
    async (name, { example, reads }) => {
      for (const wayOf of waysByName) {
        const sent: BackendBytes = { method: 'GET', bytes: example, closes: true }
        const both = await readByBoth(sent, cut(example, { name: wayOf, seed: 1 }))
        expect(both.here).toMatchObject({ body: reads, refused: undefined })
        expect(both.here.endedIn).toBeDefined()
        expect(differenceBetween(both.here, both.node)).toBeDefined()
        expect(both.explanations).toEqual([name])
      }
    },
  )
})

test('the pieces in which a response arrives change nothing', () => {
  fc.assert(
    fc.property(fc.oneof(changed, arbitraryBytes), way, ({ bytes, method, closes }, pieces) => {
      const read = ({ endedIn, refused, ...rest }: Reading): unknown => ({
        ...rest,
        isComplete: endedIn !== undefined,
        isRefused: refused !== undefined,
      })
      const whole = readHere(cut(bytes, { name: 'whole', seed: 0 }), method, closes)
      expect(read(readHere(cut(bytes, pieces), method, closes))).toEqual(read(whole))
    }),
    { numRuns: runs(10_000) },
  )
})
