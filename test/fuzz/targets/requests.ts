import { isDeepStrictEqual } from 'node:util'
import { byteByByte, fail } from '../pieces.ts'
import {
  createNodeReader,
  differenceBetween,
  readRequestsHere,
  type RequestsReading,
} from '../../support/random/request-readings.ts'

const readWithNode = createNodeReader()

/** Requests of a connection. They must read the same no matter how they are cut, and llhttp must not read any of them differently. */
export function fuzz(bytes: Buffer): void {
  const whole = readRequestsHere([bytes])
  const inPieces = readRequestsHere(byteByByte(bytes))
  // Requests before a syntax error may be passed on earlier or later.
  if (whole.refused === undefined && !isDeepStrictEqual(readings(inPieces), readings(whole)))
    fail('other pieces, another reading', { whole, inPieces })
  if (whole.refused !== undefined && inPieces.refused === undefined)
    fail('refused whole only', { whole, inPieces })

  const node = readWithNode([bytes])
  const difference = differenceBetween(whole, node)
  if (difference) fail(difference, { here: whole, node })
}

function readings({ requests, refused, stopped }: RequestsReading): unknown {
  return [
    requests.map(({ endedIn, ...rest }) => ({ ...rest, isComplete: endedIn !== undefined })),
    refused,
    stopped,
  ]
}
