import type { BoundedMemory } from '../limits/clients/bounded-memory.ts'

/** Number of wrong tokens from one client in a minute that are answered with 401. */
const GUESSES = 10
const WINDOW_S = 60
const BLOCK_S = 60

/**
 * Counts a wrong token of a client.
 *
 * @returns for how many seconds the client should send no further token, if it has sent too many; otherwise 0
 */
export type RecordWrongToken = (client: string) => Promise<number>

/**
 * Counts wrong admin tokens. After ten within a minute, a client is told for a minute that it has sent too many. The right token is never
 * counted or refused, because operators may share the address of a proxy with an attacker.
 *
 * @param now milliseconds of a monotonic clock
 */
export function createTokenGuesses(now: () => number): RecordWrongToken {
  let limiter: Promise<BoundedMemory> | undefined
  // Loaded on first use: at the start, it would add forty modules.
  const open = async (): Promise<BoundedMemory> => {
    const { BoundedMemory } = await import('../limits/clients/bounded-memory.ts')
    return new BoundedMemory({ points: GUESSES, duration: WINDOW_S }, now)
  }

  return async (client) => {
    const counts = await (limiter ??= open())
    const known = await counts.penalty(client)
    if (known.consumedPoints <= GUESSES) return 0
    if (known.consumedPoints === GUESSES + 1) await counts.block(client, BLOCK_S)
    return known.consumedPoints === GUESSES + 1 ? BLOCK_S : waitS(known)
  }
}

function waitS({ msBeforeNext }: { readonly msBeforeNext: number }): number {
  return Math.max(1, Math.ceil(msBeforeNext / 1000))
}
