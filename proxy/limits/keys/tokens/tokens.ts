import { isDeepStrictEqual } from 'node:util'
import type { Log } from '../../../../shared/log.ts'
import { policiesOf, type Rule } from '../../../policy.ts'
import { conditionClaims } from '../../rules/condition-needs.ts'
import type { Telemetry } from '../../../telemetry/telemetry.ts'
import { KeySet } from './key-set.ts'
import { loadKeySet, type KeySetPlace } from './load-key-set.ts'
import { claimNames, createTokenReader, type TokenReader } from './token-reader.ts'

/** How to verify the tokens that rules count by. Undefined fields are not checked. */
export type TokenSettings = {
  readonly place: KeySetPlace
  readonly issuer: string | undefined
  readonly audience: string | undefined
}

/** The token reader, and how to wait for its keys and close it. */
export type Tokens = {
  readonly reader: TokenReader
  /** A reader for requests that operators ask about, which metrics do not count. */
  readonly uncounted: TokenReader
  readonly place: KeySetPlace
  readonly keySet: KeySet
  ready(limitMs: number): Promise<void>
  close(): void
}

/** Maximum verified tokens to remember: a few megabytes. */
const VERIFIED_TOKENS = 10_000
/** Maximum tokens to remember of requests that operators ask about. */
const ASKED_TOKENS = 10

/**
 * Starts loading the keys, or reuses the key set of `running` if it has the same source.
 *
 * @param options.now milliseconds of a monotonic clock
 * @param options.wallNow the wall clock in milliseconds, for the validity of tokens
 * @returns undefined if no rule reads tokens; no key set is loaded then
 */
export async function createTokens(
  settings: TokenSettings | undefined,
  rules: readonly Rule[],
  options: {
    readonly telemetry: Telemetry
    readonly log: Log
    readonly now: () => number
    readonly wallNow: () => number
  },
  running?: Tokens,
): Promise<Tokens | undefined> {
  const policies = policiesOf(rules)
  const claims = claimNames(policies)
  const withConditions = rules.filter((rule) => conditionClaims(rule).length > 0)
  if (!settings || claims.length + withConditions.length === 0) return undefined
  const { place, issuer, audience } = settings
  const { telemetry, log, now, wallNow } = options
  // A gateway without such rules does not load the library.
  const { TokenVerifier } = await import('./token-claims.ts')
  const keySet =
    running && isDeepStrictEqual(running.place, place)
      ? running.keySet
      : new KeySet({ load: () => loadKeySet(place), telemetry, log, now })
  const isSecret = place.kind === 'secret'
  const named = [...new Set(withConditions.flatMap(conditionClaims))]
  const reading = { keySet, isSecret, issuer, audience, claims, conditionClaims: named, now: wallNow }
  const verifier = new TokenVerifier({ ...reading, capacity: VERIFIED_TOKENS, telemetry })
  const uncounted = new TokenVerifier({
    ...reading,
    capacity: ASKED_TOKENS,
    telemetry: { tokenRead: () => undefined },
  })
  telemetry.observeTable('tokens', () => verifier.readUse())
  return {
    reader: createTokenReader(policies, verifier, policiesOf(withConditions)),
    uncounted: createTokenReader(policies, uncounted, policiesOf(withConditions)),
    place,
    keySet,
    ready: (limitMs) => keySet.ready(limitMs),
    close: () => keySet.close(),
  }
}
