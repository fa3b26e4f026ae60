import { isDeepStrictEqual } from 'node:util'
import { byteByByte, fail } from '../pieces.ts'
import { readHere, type Reading } from '../../support/random/response-readings.ts'

/**
 * A backend's response to GET and to HEAD. It must read the same no matter how it is cut. The comparison with llhttp is in test/property.
 */
export function fuzz(bytes: Buffer): void {
  for (const method of ['GET', 'HEAD']) {
    const whole = readHere([bytes], method, true)
    const inPieces = readHere(byteByByte(bytes), method, true)
    if (!isDeepStrictEqual(reading(inPieces), reading(whole)))
      fail('other pieces, another reading', { whole, inPieces })
    if (whole.body.length > bytes.length) fail('more content than bytes', whole)
  }
}

function reading({ endedIn, refused, ...rest }: Reading): unknown {
  return { ...rest, isComplete: endedIn !== undefined, isRefused: refused !== undefined }
}
