import type { Log } from '../../shared/log.ts'
import type { Policy } from '../policy.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import { keepKeySet } from './key-set.ts'
import { loadKeySet, type KeySetPlace } from './load-key-set.ts'
import { claimNames, createTokenReader, type TokenReader } from './token-reader.ts'

/** How tokens that rules count by are verified. What is undefined is not checked. */
export type TokenSettings = {
  readonly place: KeySetPlace
  readonly issuer: string | undefined
  readonly audience: string | undefined
}

/** What reads tokens, and how to wait for its keys and close it. */
export type Tokens = { readonly reader: TokenReader; ready(limitMs: number): Promise<void>; close(): void }

/** Verified tokens that are remembered: a few megabytes. */
const VERIFIED_TOKENS = 10_000

/**
 * Begins to load the keys.
 *
 * @param options.now milliseconds of a monotonic clock
 * @param options.wallNow milliseconds of the wall clock, which tokens go by
 * @returns undefined where no rule counts by tokens: then no key set is loaded
 */
export async function createTokens(
  settings: TokenSettings | undefined,
  policies: readonly Policy[],
  options: {
    readonly telemetry: Telemetry
    readonly log: Log
    readonly now: () => number
    readonly wallNow: () => number
  },
): Promise<Tokens | undefined> {
  const claims = claimNames(policies)
  if (!settings || claims.length === 0) return undefined
  const { place, issuer, audience } = settings
  const { telemetry, log, now, wallNow } = options
  // A gateway without rules by tokens does not load the library.
  const { createTokenVerifier } = await import('./token-claims.ts')
  const keySet = keepKeySet({ load: () => loadKeySet(place), telemetry, log, now })
  const verifier = createTokenVerifier({
    keySet,
    isSecret: place.kind === 'secret',
    issuer,
    audience,
    claims,
    capacity: VERIFIED_TOKENS,
    telemetry,
    now: wallNow,
  })
  telemetry.observeTable('tokens', () => verifier.readUse())
  return {
    reader: createTokenReader(policies, verifier),
    ready: (limitMs) => keySet.ready(limitMs),
    close: () => keySet.close(),
  }
}
