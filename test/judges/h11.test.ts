import fc from 'fast-check'
import { expect, test } from 'vitest'
import { waysOfSending, type WayOfSending } from '../support/http/raw-client.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import {
  arbitraryRequestBytes,
  changedRequests,
  wellFormedRequests,
} from '../support/random/request-bytes.ts'
import { readRequestsHere, type RequestsReading } from '../support/random/request-readings.ts'
import { testSeed } from '../support/random/seed.ts'
import { askPython } from './python.ts'

/*
 * h11 (Debian's python3-h11) reads the same bytes as the gateway's parser, which gets them whole, line by line, byte by byte and in random
 * pieces. h11 must read each request that the gateway accepts in the same way, or refuse it for a reason in the table. Requests that h11
 * accepts and the gateway refuses are only counted: property/request-parser gives the reason for each.
 */

type H11Request = {
  readonly method: string
  readonly target: string
  readonly fields: readonly (readonly [string, string])[]
  readonly body: string
  readonly whole: boolean
}
type H11Reading = {
  readonly messages: readonly H11Request[]
  readonly refused: string | null
  readonly stopped: boolean
}

/** The messages with which h11 refuses requests that the parser accepts. */
const stricterThere: readonly RegExp[] = [
  // The gateway also refuses it, in a step after the parser.
  /^Missing mandatory Host: header$/,
  /^Found multiple Host: headers$/,
  // An empty line before the request, which a server should ignore (RFC 9112 section 2.2).
  /^no request line received$/,
]

const SAMPLES = Number(process.env['JUDGE_SAMPLES'] ?? 20_000)
const waysByName = Object.keys(waysOfSending) as WayOfSending[]

function readCut(bytes: string, way: WayOfSending, seed: number): RequestsReading {
  const pieces = waysOfSending[way](bytes, seededRandom(seed))
  return readRequestsHere(pieces.map((piece) => Buffer.from(piece, 'latin1')))
}

/** The difference between the gateway's reading and h11's; undefined if no backend could misread the request. */
function differenceBetween(here: RequestsReading, there: H11Reading): string | undefined {
  for (const [i, request] of here.requests.entries()) {
    const other = there.messages[i]
    const isWhole = request.endedIn !== undefined
    if (!other || (isWhole && !other.whole)) {
      if (there.refused === null)
        return there.stopped || !isWhole ? undefined : `request ${i} is not read there`
      // The gateway may also refuse it, in a piece that has not arrived.
      if (!isWhole || stricterThere.some((reason) => reason.test(there.refused ?? ''))) return undefined
      return `request ${i} is refused there: ${there.refused}`
    }
    if (request.method !== other.method || request.target !== other.target) return `line of request ${i}`
    if (fieldsOf(request.fields) !== fieldsOf(other.fields.flat())) return `fields of request ${i}`
    if (isWhole ? request.body !== other.body : !sharesBeginning(request.body, other.body))
      return `body of request ${i}`
  }
  return undefined
}

/** Adds `Host`, which most samples lack, so that they are not refused for that alone. */
function withHost(bytes: string): string {
  return /^host:/im.test(bytes) ? bytes : bytes.replace(/ HTTP\/1\.1\r\n/g, '$&Host: a\r\n')
}

function sharesBeginning(one: string, other: string): boolean {
  return one.startsWith(other) || other.startsWith(one)
}

/** h11 writes names in lower case, and merges Content-Length lines of the same value. */
function fieldsOf(fields: readonly string[]): string {
  const lines = fields.flatMap((name, i) =>
    i % 2 === 0 ? [`${name.toLowerCase()}:${fields[i + 1] ?? ''}`] : [],
  )
  return lines.map((line) => (line.startsWith('transfer-encoding:') ? line.toLowerCase() : line)).join('\n')
}

test.each([
  ['well-formed requests', wellFormedRequests],
  ['requests that have been changed somewhere', changedRequests],
  ['any bytes', arbitraryRequestBytes],
])('h11 reads %s as the gateway does, or refuses them for a known reason', (_, arbitrary) => {
  const requests = fc.sample(arbitrary, { numRuns: SAMPLES, seed: testSeed() }).map(withHost)
  const { requests: read } = askPython('h11_reader.py', ['python3-h11'], { requests }) as {
    readonly requests: readonly H11Reading[]
  }
  const count = { read: 0, stricterHere: 0, refused: 0 }
  const differences = requests.flatMap((bytes, i) => {
    const there = read[i]
    if (!there) throw new Error(`h11 has not read sample ${i}`)
    return waysByName.flatMap((way) => {
      const here = readCut(bytes, way, i)
      if (here.refused === undefined) count.read++
      else if (there.refused === null) count.stricterHere++
      else count.refused++
      const difference = differenceBetween(here, there)
      return difference === undefined ? [] : [{ difference, way, bytes }]
    })
  })
  console.log(`${requests.length} samples in ${waysByName.length} ways: ${JSON.stringify(count)}`)
  expect(differences.slice(0, 5)).toEqual([])
})
