import type { Socket } from 'node:net'
import type { UpstreamExchange } from '../exchange.ts'
import type { ServerPool } from '../servers/server-pool.ts'
import type { UpstreamPool } from '../pool.ts'
import { Http2Pool, type Http2PoolOptions } from './pool.ts'

/**
 * The connections to a server whose protocol is negotiated with TLS (ALPN). The negotiated protocol is used from then on; after a
 * failed connection it is negotiated again. WebSockets need HTTP/1.1 in any case.
 */
export class NegotiatedPool implements ServerPool {
  readonly #http1: UpstreamPool
  readonly #http2: Http2Pool
  #isHttp1 = false

  /**
   * @param createHttp1 creates the pool for HTTP/1.1, and calls the function passed to it when one of its connections fails
   * @param options of the HTTP/2 pool, whose connections offer both protocols
   */
  constructor(createHttp1: (onError: () => void) => UpstreamPool, options: Http2PoolOptions) {
    this.#http1 = createHttp1(() => {
      this.#isHttp1 = false
    })
    this.#http2 = new Http2Pool({
      ...options,
      onHttp1: (socket, waiting) => this.#useHttp1(socket, waiting),
    })
  }

  get size(): number {
    return this.#http1.size + this.#http2.size
  }

  get streams(): number {
    return this.#http1.streams + this.#http2.streams
  }

  get busy(): number {
    return this.#http1.busy + this.#http2.busy
  }

  get queued(): number {
    return this.#http1.queued + this.#http2.queued
  }

  get queuedUploads(): number {
    return this.#http1.queuedUploads
  }

  send(exchange: UpstreamExchange): void {
    if (this.#isHttp1 || exchange.upgrades) this.#http1.send(exchange)
    else this.#http2.send(exchange)
  }

  retry(exchange: UpstreamExchange): void {
    if (this.#isHttp1 || exchange.upgrades) this.#http1.retry(exchange)
    else this.#http2.retry(exchange)
  }

  destroy(): void {
    this.#http1.destroy()
    this.#http2.destroy()
  }

  #useHttp1(socket: Socket, waiting: readonly UpstreamExchange[]): void {
    this.#isHttp1 = true
    this.#http1.adopt(socket)
    for (const exchange of waiting) this.#http1.send(exchange)
  }
}
