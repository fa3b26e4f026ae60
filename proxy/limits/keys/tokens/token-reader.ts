import { linesOf } from '../../../http/message/headers.ts'
import { findTokens, MAX_TOKENS, type SpelledToken } from '../../../http/fields/json-web-tokens.ts'
import type { ClientRequest } from '../../../http/message/client-request.ts'
import type { Policy } from '../../../policy.ts'
import { singleParts } from '../../../policy/partition.ts'
import { textsWithoutSchemes } from '../credentials/removed-schemes.ts'
import type { Claims, TokenVerifier } from './token-claims.ts'

/**
 * The claims of a request's verified tokens, without duplicates. `too-many`: the request has too many tokens to read, or too many
 * signatures to check, so it is unknown which token the backend takes.
 */
export type ReadClaims = readonly Claims[] | 'too-many'

/** Reads the tokens of a request if a rule counts by their claims. */
export type TokenReader = {
  /** Returns undefined if no policy needs tokens, or if no token can be verified. */
  read(
    policies: readonly Policy[],
    request: Pick<ClientRequest, 'rawHeaders'>,
  ): ReadClaims | undefined | Promise<ReadClaims | undefined>
}

/** Returns the names of the claims that policies count by, or that name the plan of a client. */
export function claimNames(policies: readonly Policy[]): string[] {
  return policies.flatMap(({ partition, plans }) => [
    ...singleParts(partition).flatMap((part) => (part.kind === 'jwt' ? [part.name] : [])),
    ...(plans?.claim === undefined ? [] : [plans.claim]),
  ])
}

/**
 * Finds tokens in `Authorization` as lenient backends do: with any scheme, before other words, with signatures that contain characters
 * outside base64, and in pieces that become one token when the names of schemes are removed. The backend takes one of these tokens; every
 * verified one counts.
 *
 * @param policies all policies that can apply to a request, including those of overrides
 * @param withConditions the policies whose rules have conditions on claims
 */
export function createTokenReader(
  policies: readonly Policy[],
  verifier: TokenVerifier,
  withConditions: readonly Policy[] = [],
): TokenReader {
  const needing = new Set([
    ...policies.filter((policy) => claimNames([policy]).length > 0),
    ...withConditions,
  ])
  return {
    read(applying, { rawHeaders }) {
      if (!applying.some((policy) => needing.has(policy))) return undefined
      const value = linesOf(rawHeaders, 'authorization').join(', ')
      const others = textsWithoutSchemes(value)
      if (others === undefined) return 'too-many'
      const found = [value, ...others].map(findTokens)
      const tokens = found.flat()
      const signed = new Set(tokens.map((token) => token.signed))
      if (signed.size > MAX_TOKENS || found.some(({ length }) => length > MAX_TOKENS)) return 'too-many'
      if (tokens.length > 1) return readSeveral(tokens, verifier, found.length > 1)
      const [token] = tokens
      const claims = token && verifier.claimsOf(token)
      return claims instanceof Promise ? claims.then(present) : present(claims)
    },
  }
}

/** @param mayRepeat whether some of the tokens may differ only in the text after their signature */
async function readSeveral(
  found: readonly SpelledToken[],
  verifier: TokenVerifier,
  mayRepeat: boolean,
): Promise<ReadClaims | undefined> {
  const tokens = mayRepeat ? await verifier.withoutRepeated(found) : found
  if (await verifier.needTooManyChecks(tokens)) return 'too-many'
  const read = await Promise.all(tokens.map(async (token) => verifier.claimsOf(token)))
  const verified = read.filter((claims) => claims !== undefined)
  return verified.length === 0 ? undefined : verified
}

function present(claims: Claims | undefined): ReadClaims | undefined {
  return claims && [claims]
}
