import type { RateLimiterMemory } from 'rate-limiter-flexible'

/** Wrong tokens from one address in a minute, before whoever is there has to wait. */
const GUESSES = 10
const WINDOW_S = 60
const BLOCK_S = 60

export type TokenGuesses = {
  /**
   * Counts a guess before it is looked at, so that those sent at once are counted too.
   *
   * @returns for how many seconds the address has to wait; 0 where the token may be looked at
   */
  begin(address: string): Promise<number>
  /** Takes a guess back that was right. */
  wasRight(address: string): Promise<unknown>
}

/**
 * Bounds how often the admin token can be guessed: after ten wrong ones within a minute an address is refused for a
 * minute, whatever it sends.
 */
export function createTokenGuesses(): TokenGuesses {
  let guesses: RateLimiterMemory | undefined
  return {
    begin: async (address) => {
      // Not at the start, which it would make longer by forty modules.
      const { RateLimiterMemory, RateLimiterRes } = await import('rate-limiter-flexible')
      guesses ??= new RateLimiterMemory({ points: GUESSES, duration: WINDOW_S, blockDuration: BLOCK_S })
      try {
        await guesses.consume(address)
        return 0
      } catch (refused) {
        if (refused instanceof RateLimiterRes) return Math.max(1, Math.ceil(refused.msBeforeNext / 1000))
        throw refused
      }
    },
    wasRight: (address) => Promise.resolve(guesses?.reward(address)),
  }
}
