import type { UpstreamExchange } from '../exchange.ts'
import type { UpstreamSender } from './server-pool.ts'
import type { UpstreamFailure } from '../failure.ts'
import type { PickServer } from './balancer.ts'
import { MovingExchange, type FailoverTarget } from './moving-exchange.ts'
import type { Server } from './server.ts'

/**
 * The servers of a backend; each request goes to one of them. With a single server this costs nothing.
 */
export class ServerGroup implements UpstreamSender, FailoverTarget {
  #servers: readonly Server[]
  #only: Server | undefined
  /** Servers that take no further requests, and finish those in flight. */
  #retired: readonly Server[] = []
  readonly #pick: PickServer
  readonly #now: () => number

  /** @param servers never empty */
  constructor(servers: readonly Server[], pick: PickServer, now: () => number) {
    this.#servers = servers
    this.#only = servers.length === 1 ? servers[0] : undefined
    this.#pick = pick
    this.#now = now
  }

  get servers(): readonly Server[] {
    return this.#servers
  }

  /** Uses these servers from now on. Servers that are no longer among them finish their requests in flight. */
  replace(servers: readonly Server[]): void {
    const gone = this.#servers.filter((server) => !servers.includes(server))
    this.#servers = servers
    this.#only = servers.length === 1 ? servers[0] : undefined
    for (const server of gone) server.retire(this.#now)
    this.#retired = [...this.#retired.filter(({ hasEnded }) => !hasEnded), ...gone]
  }

  send(exchange: UpstreamExchange): void {
    if (this.#only) return this.#only.pool.send(exchange)
    const server = this.#choose(() => true)
    if (server) new MovingExchange(exchange, server, this).send()
  }

  retry(exchange: UpstreamExchange): void {
    if (this.#only) this.#only.pool.retry(exchange)
    else this.send(exchange)
  }

  begin(server: Server): void {
    server.begin(this.#now())
  }

  fail(server: Server, failure: UpstreamFailure): void {
    // A reused connection that has closed says nothing about the server.
    if (failure.onReusedConnection || failure.isOfRequest) return
    const isAsGood = (other: Server): boolean => other.isHealthy || !server.isHealthy
    const others = this.#servers.some((other) => other !== server && !other.isEjected && isAsGood(other))
    server.recordFailure(failure.kind, this.#now(), others)
  }

  chooseOther(tried: ReadonlySet<Server>): Server | undefined {
    return this.#choose((other) => !tried.has(other))
  }

  retire(): void {
    for (const server of this.#servers) server.retire(this.#now)
  }

  /** Whether all servers have ended. */
  get hasEnded(): boolean {
    return this.#all().every(({ hasEnded }) => hasEnded)
  }

  destroy(): void {
    for (const server of this.#all()) server.destroy()
  }

  #all(): readonly Server[] {
    return [...this.#servers, ...this.#retired]
  }

  /**
   * Chooses a server. If no server is healthy, all servers that are not ejected are used, because the health check itself may be broken. If
   * all are ejected, all are used: the last one is never ejected, but a name may resolve to fewer servers later.
   */
  #choose(mayUse: (server: Server) => boolean): Server | undefined {
    const nowMs = this.#now()
    const isAvailable = (server: Server): boolean => server.isAvailable(nowMs) && mayUse(server)
    return (
      this.#pick(this.#servers, (server) => server.isHealthy && isAvailable(server)) ??
      this.#pick(this.#servers, isAvailable) ??
      this.#pick(this.#servers, mayUse)
    )
  }
}
