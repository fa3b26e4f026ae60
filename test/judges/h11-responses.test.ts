import fc from 'fast-check'
import { expect, test } from 'vitest'
import { waysOfSending, type WayOfSending } from '../support/http/raw-client.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { arbitraryBytes, changed, wellFormed } from '../support/random/response-bytes.ts'
import { readHere, type HeadRead, type Reading } from '../support/random/response-readings.ts'
import { testSeed } from '../support/random/seed.ts'
import { askPython } from './python.ts'

/*
 * h11 (Debian's python3-h11) reads the same responses as the gateway's parser, which gets them whole, line by line, byte by byte and in
 * random pieces. The gateway passes on to a client every response that it accepts. h11 must read such a response in the same way, or refuse
 * it for a reason in the table.
 */

type H11Message = {
  readonly status: number
  readonly fields: readonly (readonly [string, string])[]
  readonly body: string
  readonly whole: boolean
}
type H11Reading = { readonly messages: readonly H11Message[]; readonly refused: string | null }

/** The messages with which h11 refuses responses that the gateway accepts. */
const stricterThere: readonly RegExp[] = [
  // An empty line after an interim response, as Helidon 4 sends it.
  /^no response line received$/,
  // Blanks before a chunk extension (RFC 9112 section 7.1.1): the gateway writes chunks of its own.
  /^illegal chunk header: bytearray\(b'[0-9a-fA-F]+[\t \\]/,
  // Framing fields among the trailers, which the gateway does not pass on.
  /^Only Transfer-Encoding: chunked is supported$|^bad Content-Length$/,
  // 101 to a request that asked for no other protocol. The gateway refuses it in the step that takes the connection over.
  /^Received server _SWITCH_UPGRADE event without a pending proposal$/,
]

const SAMPLES = Number(process.env['JUDGE_SAMPLES'] ?? 20_000)
const waysByName = Object.keys(waysOfSending) as WayOfSending[]

/** The difference between the gateway's reading and h11's; undefined if no client could misread the response. */
function differenceBetween(here: Reading, there: H11Reading): string | undefined {
  const heads = [...here.interim, ...(here.head ? [here.head] : [])]
  for (const [i, head] of heads.entries()) {
    const other = there.messages[i]
    if (!other) return refusedThere(there) ? undefined : `head ${i} is not read there: ${there.refused}`
    if (head.status !== other.status || !hasFieldsOf(head, other)) return `head ${i}`
  }
  const last = there.messages[heads.length - 1]
  if (!here.head || !last) return undefined
  const isWhole = here.endedIn !== undefined
  // 101 hands the connection over.
  if (isWhole && !last.whole && here.head.status !== 101 && !refusedThere(there))
    return `the end: ${there.refused}`
  const isSame = isWhole && last.whole ? here.body === last.body : sharesBeginning(here.body, last.body)
  return isSame ? undefined : 'body'
}

function refusedThere({ refused }: H11Reading): boolean {
  return refused !== null && stricterThere.some((reason) => reason.test(refused))
}

/** The gateway removes hop-by-hop fields. */
function hasFieldsOf({ fields }: HeadRead, { fields: others }: H11Message): boolean {
  const known = new Set(others.map(([name, value]) => `${name}:${value}`))
  return fields.every((name, i) => i % 2 === 1 || known.has(`${name}:${fields[i + 1] ?? ''}`))
}

function sharesBeginning(one: string, other: string): boolean {
  return one.startsWith(other) || other.startsWith(one)
}

test.each([
  ['well-formed responses', wellFormed],
  ['responses that have been changed somewhere', changed],
  ['any bytes', arbitraryBytes],
])('h11 reads %s as the gateway does, or refuses them for a known reason', (_, arbitrary) => {
  const responses = fc.sample(arbitrary, { numRuns: SAMPLES, seed: testSeed() })
  const { responses: read } = askPython('h11_reader.py', ['python3-h11'], {
    responses: responses.map(({ method, bytes, closes }) => [method, bytes, closes]),
  }) as {
    readonly responses: readonly H11Reading[]
  }
  const count = { read: 0, stricterHere: 0, refused: 0 }
  const differences = responses.flatMap(({ method, bytes, closes }, i) => {
    const there = read[i]
    if (!there) throw new Error(`h11 has not read sample ${i}`)
    return waysByName.flatMap((way) => {
      const pieces = waysOfSending[way](bytes, seededRandom(i)).map((piece) => Buffer.from(piece, 'latin1'))
      const here = readHere(pieces, method, closes)
      if (here.refused === undefined) count.read++
      else if (there.refused === null) count.stricterHere++
      else count.refused++
      const difference = differenceBetween(here, there)
      return difference === undefined ? [] : [{ difference, way, method, bytes, closes }]
    })
  })
  console.log(`${responses.length} samples in ${waysByName.length} ways: ${JSON.stringify(count)}`)
  expect(differences.slice(0, 5)).toEqual([])
})
