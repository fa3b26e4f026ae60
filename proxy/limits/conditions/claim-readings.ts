import type { ReadClaims } from '../keys/tokens/token-reader.ts'
import { absent, anything, MAYBE, NO, type Readings } from './readings.ts'
import type { Comparison } from './text-tests.ts'

/** The usual form, in which every backend finds the one token. */
const oneToken = /^bearer +[\w-]+\.[\w-]+\.[\w-]+$/i

/**
 * What backends may read of a claim. A claim is certain if the request has one token in the usual form, which is verified and in
 * force: a backend may refuse an expired one, or take another token that stands beside it.
 *
 * @param authorization all lines of the header
 */
export function readClaim(
  name: string,
  claims: ReadClaims | undefined,
  authorization: string | undefined,
  nowMs: number,
): Readings {
  if (claims === undefined) return absent
  if (claims === 'too-many') return anything
  const all = claims.flatMap(({ details }) => details ?? [])
  const values = all.flatMap((details) => details.values.get(name) ?? [])
  const isComplete = !all.some(({ incomplete }) => incomplete.has(name))
  if (values.length === 0 && isComplete) return absent
  const [only, ...others] = all
  const isCertain =
    only !== undefined &&
    others.length === 0 &&
    only.fromMs <= nowMs &&
    nowMs < only.untilMs &&
    oneToken.test(authorization ?? '')
  return {
    absence: isCertain ? NO : MAYBE,
    certain: isCertain ? values.map(asBytes) : [],
    possible: () => (isComplete ? values.map((value) => asBytes(value).toLowerCase()) : undefined),
  }
}

export const comparisonOfClaims: Comparison = {
  formsOf: (text) => [text.toLowerCase()],
  partOf: (text) => text.toLowerCase(),
  ignoresCase: false,
}

/** Claims are Unicode, and are compared as headers are. */
function asBytes(text: string): string {
  return Buffer.from(text).toString('latin1')
}
