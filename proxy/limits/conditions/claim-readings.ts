import type { ClaimDetails } from '../keys/tokens/claim-details.ts'
import type { ReadClaims } from '../keys/tokens/token-reader.ts'
import { absent, anything, type Readings } from './readings.ts'
import type { Comparison } from './text-tests.ts'

/** The usual form, in which every backend finds the same single token. */
const oneToken = /^bearer +[\w-]+\.[\w-]+\.[\w-]+$/i

/** The claims of a request and the header that they come from. `authorization`: all lines of the header. `nowMs`: the wall clock. */
export type ClaimSource = {
  readonly claims: ReadClaims | undefined
  readonly authorization: string | undefined
  readonly nowMs: number
}

/** Returns the values that backends may read from a claim. */
export function readClaim(name: string, source: ClaimSource): Readings {
  const { claims } = source
  if (claims === undefined) return absent
  if (claims === 'too-many') return anything
  const [first, ...others] = claims
  const only = others.length === 0 ? first?.details : undefined
  const all = only ? [only] : claims.flatMap(({ details }) => details ?? [])
  const isComplete = only ? !only.incomplete.has(name) : !all.some(({ incomplete }) => incomplete.has(name))
  const values = only
    ? (only.values.get(name) ?? none)
    : all.flatMap((details) => details.values.get(name) ?? none)
  if (values.length === 0 && isComplete) return absent
  return new ClaimReadings(values, isComplete, all, source)
}

const none: readonly string[] = []

/**
 * A claim is certain if the request has exactly one token, in the usual form, verified and not expired. A backend may refuse an expired
 * token, or take another token of the same request.
 */
class ClaimReadings implements Readings {
  readonly #values: readonly string[]
  readonly #isComplete: boolean
  readonly #all: readonly ClaimDetails[]
  readonly #source: ClaimSource

  constructor(
    values: readonly string[],
    isComplete: boolean,
    all: readonly ClaimDetails[],
    source: ClaimSource,
  ) {
    this.#values = values
    this.#isComplete = isComplete
    this.#all = all
    this.#source = source
  }

  isAbsent(): boolean {
    return false
  }

  isPresent(): boolean {
    const [only, ...others] = this.#all
    const { nowMs, authorization } = this.#source
    return (
      only !== undefined &&
      others.length === 0 &&
      only.fromMs <= nowMs &&
      nowMs < only.untilMs &&
      oneToken.test(authorization ?? '')
    )
  }

  likely(): string | undefined {
    return this.#values.length === 1 ? this.#values[0] : undefined
  }

  certainly(isSame: (text: string) => boolean): boolean {
    return this.#values.some(isSame) && this.isPresent()
  }

  possible(): readonly string[] | undefined {
    return this.#isComplete ? this.#values.map((value) => value.toLowerCase()) : undefined
  }
}

/** Unlike headers, claims are Unicode, and a text is never a list. */
export const comparisonOfClaims: Comparison = {
  sentAs: (text) => text,
  formsOf: (text) => [text.toLowerCase()],
  partOf: (text) => text.toLowerCase(),
  ignoresCase: false,
}
