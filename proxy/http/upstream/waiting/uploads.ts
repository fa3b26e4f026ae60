import type { ClientShares } from './client-shares.ts'
import type { UpstreamExchange } from '../exchange.ts'

/**
 * The requests that have a connection, or are getting one, and whose body has not fully arrived. Their number is limited, and so is each
 * client's share of it.
 */
export class Uploads {
  readonly #exchanges = new Set<UpstreamExchange>()
  readonly #shares: ClientShares

  constructor(shares: ClientShares) {
    this.#shares = shares
  }

  /** Whether a client may have one more upload. */
  allows(client: string): boolean {
    return this.#shares.allows(client)
  }

  /** Called when a request gets its connection. Counts it if some of its body has not arrived. */
  begin(exchange: UpstreamExchange): void {
    if (!exchange.isBodyPending || this.#exchanges.has(exchange)) return
    this.#exchanges.add(exchange)
    this.#shares.add(exchange.client)
  }

  /** Stops counting a request. Returns whether it was counted. */
  end(exchange: UpstreamExchange): boolean {
    if (!this.#exchanges.delete(exchange)) return false
    this.#shares.remove(exchange.client)
    return true
  }
}
