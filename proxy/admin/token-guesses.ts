import type { BoundedMemory } from '../limits/clients/bounded-memory.ts'

/** Wrong tokens from one client in a minute, before it has to wait. */
const GUESSES = 10
const WINDOW_S = 60
const BLOCK_S = 60

export type TokenGuesses = {
  /** For how many seconds the client has to wait before a token of its is looked at; 0 where it need not. */
  readWaitS(client: string): Promise<number>
  /**
   * Counts a wrong token.
   *
   * @returns for how many seconds the client has to wait if this was one too many; otherwise 0
   */
  recordWrong(client: string): Promise<number>
}

/**
 * Bounds how often the admin token can be guessed: after ten wrong ones within a minute a client is refused for a
 * minute, whatever it sends.
 *
 * @param now milliseconds of a monotonic clock
 */
export function createTokenGuesses(now: () => number): TokenGuesses {
  let limiter: Promise<BoundedMemory> | undefined
  // Not at the start, which it would make longer by forty modules.
  const open = async (): Promise<BoundedMemory> => {
    const { BoundedMemory } = await import('../limits/clients/bounded-memory.ts')
    return new BoundedMemory({ points: GUESSES, duration: WINDOW_S }, now)
  }

  return {
    readWaitS: async (client) => {
      const known = await (await limiter)?.get(client)
      return known && known.consumedPoints > GUESSES ? waitS(known) : 0
    },

    recordWrong: async (client) => {
      const counts = await (limiter ??= open())
      const known = await counts.penalty(client)
      if (known.consumedPoints <= GUESSES) return 0
      if (known.consumedPoints === GUESSES + 1) await counts.block(client, BLOCK_S)
      return known.consumedPoints === GUESSES + 1 ? BLOCK_S : waitS(known)
    },
  }
}

function waitS({ msBeforeNext }: { readonly msBeforeNext: number }): number {
  return Math.max(1, Math.ceil(msBeforeNext / 1000))
}
