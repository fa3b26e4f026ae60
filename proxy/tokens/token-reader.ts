import { linesOf } from '../http/header-lines.ts'
import type { ClientRequest } from '../message/messages.ts'
import { singleParts, type Policy } from '../policy.ts'
import type { Claims, TokenVerifier } from './token-claims.ts'

/** Reads the token of a request, where a rule counts by what it says. */
export type TokenReader = {
  /** Undefined where no policy needs it, where there is no token, and where it cannot be verified. */
  read(
    policies: readonly Policy[],
    request: Pick<ClientRequest, 'rawHeaders'>,
  ): Claims | undefined | Promise<Claims | undefined>
}

/** RFC 6750 section 2.1. */
const bearer = /^[\t ]*bearer[\t ]+([\w.~+/-]+=*)[\t ]*$/i
const LONGEST_TOKEN = 16 * 1024

/** The claims that policies count by. */
export function claimNames(policies: readonly Policy[]): string[] {
  return policies.flatMap(({ partition }) =>
    singleParts(partition).flatMap((part) => (part.kind === 'jwt' ? [part.name] : [])),
  )
}

/** @param policies all that a request can come under, those of overrides included */
export function createTokenReader(policies: readonly Policy[], verifier: TokenVerifier): TokenReader {
  const needing = new Set(policies.filter((policy) => claimNames([policy]).length > 0))
  return {
    read(applying, { rawHeaders }) {
      if (!applying.some((policy) => needing.has(policy))) return undefined
      const token = tokenIn(rawHeaders)
      return token === undefined ? undefined : verifier.claimsOf(token)
    },
  }
}

/** Of several lines there is no telling which one the backend takes: then there is no token. */
function tokenIn(rawHeaders: readonly string[]): string | undefined {
  const lines = linesOf(rawHeaders, 'authorization')
  const [line = ''] = lines
  if (lines.length !== 1 || line.length > LONGEST_TOKEN) return undefined
  return bearer.exec(line)?.[1]
}
