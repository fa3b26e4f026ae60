import type { RateLimiterMemory } from 'rate-limiter-flexible'

/** Wrong tokens from one client in a minute, before it has to wait. */
const GUESSES = 10
const WINDOW_S = 60
const BLOCK_S = 60
/** Clients whose guesses are known at once. Beyond that the one that has not guessed for longest is forgotten. */
const MOST_CLIENTS = 10_000

export type TokenGuesses = {
  /** For how many seconds the client has to wait before a token of its is looked at; 0 where it need not. */
  readWaitS(client: string): Promise<number>
  /**
   * Counts a wrong token.
   *
   * @returns for how many seconds the client has to wait if this was one too many; otherwise 0
   */
  noteWrong(client: string): Promise<number>
}

/**
 * Bounds how often the admin token can be guessed: after ten wrong ones within a minute a client is refused for a
 * minute, whatever it sends.
 */
export function createTokenGuesses(): TokenGuesses {
  let limiter: Promise<RateLimiterMemory> | undefined
  // Not at the start, which it would make longer by forty modules.
  const open = async (): Promise<RateLimiterMemory> => {
    const { RateLimiterMemory } = await import('rate-limiter-flexible')
    return new RateLimiterMemory({ points: GUESSES, duration: WINDOW_S, blockDuration: BLOCK_S })
  }
  /** In the order of their last guesses. */
  const clients = new Set<string>()

  function remember(client: string): string | undefined {
    clients.delete(client)
    clients.add(client)
    if (clients.size <= MOST_CLIENTS) return undefined
    const [oldest] = clients
    if (oldest !== undefined) clients.delete(oldest)
    return oldest
  }

  return {
    readWaitS: async (client) => {
      const known = clients.has(client) ? await (await limiter)?.get(client) : undefined
      return known && known.consumedPoints > GUESSES ? waitS(known) : 0
    },

    noteWrong: async (client) => {
      const forgotten = remember(client)
      const counts = await (limiter ??= open())
      if (forgotten !== undefined) await counts.delete(forgotten)
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
