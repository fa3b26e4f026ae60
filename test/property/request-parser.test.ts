import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { waysOfSending, type WayOfSending } from '../support/http/raw-client.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import {
  arbitraryRequestBytes,
  changedRequests,
  wellFormedRequests,
} from '../support/random/request-bytes.ts'
import {
  createNodeReader,
  differenceBetween,
  readRequestsHere,
  type RequestsReading,
} from '../support/random/request-readings.ts'
import { runs } from '../support/random/runs.ts'

/*
 * The attack: requests that the gateway reads in one way, and a proxy before it or a backend reads in another. So the same bytes, in the
 * same pieces, go to the gateway's parser and to llhttp, the parser of Node's server. llhttp must read every request that the gateway
 * accepts in the same way, to the byte at which it ends. llhttp may accept a request that the gateway refuses only for a reason in the
 * table.
 */

type Stricter = {
  readonly name: string
  readonly section: string
  readonly example: string
  /** The gateway's error message. */
  readonly refused: RegExp
  readonly covers: RegExp
}

const end = ' HTTP/1.1\r\n\r\n'
const chunkedHead = 'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n'

/** Requests that llhttp accepts and the gateway refuses. */
const stricter: readonly Stricter[] = [
  {
    name: 'more than one blank in the request line',
    section: 'RFC 9112 section 3',
    example: `GET  /a${end}`,
    refused: /^invalid (?:request target|HTTP version)$/,
    covers: /[A-Z-]{3,} {2,}|[A-Z-]{3,} +[^ ]+ {2,}[A-Z]+\//,
  },
  {
    name: 'another protocol than HTTP',
    section: 'RFC 9112 section 2.3',
    example: 'GET /a RTSP/1.0\r\n\r\n',
    refused: /^invalid HTTP version$/,
    covers: / (?:RTSP|ICE)\//,
  },
  {
    name: 'an empty line that is no CRLF before a request',
    section: 'RFC 9112 section 2.2',
    example: `\nGET /a${end}`,
    refused: /^a line (?:that does not end in CRLF|ends with a bare LF)$|^a bare CR$|^invalid character/,
    // Its CR may be the last byte of the preceding body.
    covers: /\n/,
  },
  {
    name: 'tab after a transfer coding that another line takes away again',
    section: 'RFC 9112 section 6.1',
    example: 'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    refused: /^tab after a transfer coding$/,
    covers: /transfer-encoding:[^\n]*\t[\t ]*\r/i,
  },
  {
    name: 'PRI of the HTTP/2 preface, which is not a method',
    section: 'RFC 9113 section 3.4',
    example: 'PRI /\r\n\r\n',
    refused: /^unknown method/,
    covers: /PRI /,
  },
  {
    name: 'a chunk extension without a name',
    section: 'RFC 9112 section 7.1.1',
    example: `${chunkedHead}1;;a\r\nx\r\n0\r\n\r\n`,
    refused: /^invalid chunk size$/,
    covers: /\n[0-9a-fA-F]+;/,
  },
]

const waysByName = Object.keys(waysOfSending) as WayOfSending[]
const way = fc.record({ name: fc.constantFrom(...waysByName), seed: fc.nat() })

function cut(bytes: string, { name, seed }: { name: WayOfSending; seed: number }): Buffer[] {
  return waysOfSending[name](bytes, seededRandom(seed)).map((piece) => Buffer.from(piece, 'latin1'))
}

const readWithNode = createNodeReader()

function isRefusedHereOnly(here: RequestsReading, node: RequestsReading): boolean {
  const whole = ({ requests }: RequestsReading): number =>
    requests.filter(({ endedIn }) => endedIn !== undefined).length
  return here.refused !== undefined && node.refused === undefined && whole(node) > whole(here)
}

type Share = { both: number; refused: number }

async function compare(sent: fc.Arbitrary<string>, times: number): Promise<Share> {
  const count = { all: 0, both: 0, refused: 0 }
  await fc.assert(
    fc.asyncProperty(sent, way, async (bytes, pieces) => {
      const parts = cut(bytes, pieces)
      const here = readRequestsHere(parts)
      const node = readWithNode(parts)
      count.all++
      if (here.refused !== undefined) count.refused++
      else if (node.refused === undefined) count.both++
      expect(differenceBetween(here, node), JSON.stringify({ here, node })).toBeUndefined()
      if (!node.stopped && isRefusedHereOnly(here, node))
        expect(
          stricter.some(({ refused, covers }) => refused.test(here.refused ?? '') && covers.test(bytes)),
          JSON.stringify({ here, node }),
        ).toBe(true)
      await Promise.resolve()
    }),
    { numRuns: runs(times) },
  )
  return { both: count.both / count.all, refused: count.refused / count.all }
}

describe('compared with llhttp', () => {
  test('well-formed requests are read by both, with the same result', async () => {
    expect(await compare(wellFormedRequests, 2_000)).toEqual({ both: 1, refused: 0 })
  })

  test('requests that have been changed somewhere are read with the same result, or refused here', async () => {
    const share = await compare(changedRequests, 20_000)
    expect(share.both).toBeGreaterThan(0.15)
    expect(share.refused).toBeGreaterThan(0.2)
  })

  test('any bytes are read with the same result, or refused here', async () => {
    const share = await compare(arbitraryRequestBytes, 10_000)
    expect(share.refused).toBeGreaterThan(0.2)
  })

  test.each(stricter.map((one) => [one.name, one] as const))(
    'stricter: %s',
    (_, { example, refused, covers }) => {
      const pieces = [Buffer.from(example, 'latin1')]
      expect(readRequestsHere(pieces)).toMatchObject({ refused: expect.stringMatching(refused) as string })
      expect(readWithNode(pieces)).toMatchObject({ requests: [{ endedIn: 0 }], refused: undefined })
      expect(example).toMatch(covers)
    },
  )
})

test('the pieces in which requests arrive change nothing', () => {
  fc.assert(
    fc.property(fc.oneof(changedRequests, arbitraryRequestBytes), way, (bytes, pieces) => {
      const read = ({ requests, refused, stopped }: RequestsReading): unknown => ({
        requests: requests.map(({ endedIn, ...rest }) => ({ ...rest, isComplete: endedIn !== undefined })),
        isRefused: refused !== undefined,
        stopped,
      })
      const whole = readRequestsHere(cut(bytes, { name: 'whole', seed: 0 }))
      const inPieces = readRequestsHere(cut(bytes, pieces))
      if (whole.refused === undefined) expect(read(inPieces)).toEqual(read(whole))
      else
        expect(inPieces.refused === undefined && inPieces.requests.length > whole.requests.length).toBe(false)
    }),
    { numRuns: runs(10_000) },
  )
})
