import type { UpstreamExchange } from '../exchange.ts'
import type { ServerPool, UpstreamSender } from './server-pool.ts'
import { hostNameOf, type LookUp } from './addresses.ts'
import type { PickServer } from './balancer.ts'
import { ServerGroup } from './group.ts'
import { Prober, type ProberOptions } from './prober.ts'
import { Server, type OnServerState, type ServerPlace } from './server.ts'

export type ResolvedGroupOptions = {
  /** The URLs of the servers, at least one. */
  readonly urls: readonly URL[]
  readonly pick: PickServer
  readonly lookUp: LookUp
  readonly open: (place: ServerPlace) => ServerPool
  /** How servers are probed; undefined if they are not. */
  readonly health?: Omit<ProberOptions, 'now'> | undefined
  readonly onState?: OnServerState | undefined
  /** Monotonic milliseconds. */
  readonly now: () => number
}

/** How long after a failed lookup the next one begins. */
const RETRY_MS = 5_000

/**
 * The servers of a backend. A name with several addresses counts as several servers. Names are looked up from the first request on, and
 * again when the answer of DNS expires. A server whose address is gone finishes its requests in flight.
 */
export class ResolvedGroup implements UpstreamSender {
  readonly #options: ResolvedGroupOptions
  readonly #group: ServerGroup
  /** The addresses that each URL was last resolved to. */
  readonly #resolved = new Map<URL, readonly string[]>()
  readonly #timers = new Map<URL, NodeJS.Timeout>()
  readonly #started = new Set<URL>()
  readonly #prober: Prober | undefined
  #isStopped = false

  constructor(options: ResolvedGroupOptions) {
    this.#options = options
    this.#group = new ServerGroup(
      options.urls.map((url) => this.#serverOf(url)),
      options.pick,
      options.now,
    )
    this.#prober = options.health && new Prober({ ...options.health, now: options.now })
  }

  get servers(): readonly Server[] {
    return this.#group.servers
  }

  send(exchange: UpstreamExchange): void {
    this.#group.send(exchange)
  }

  retry(exchange: UpstreamExchange): void {
    this.#group.retry(exchange)
  }

  /** Looks the names up now instead of with the first request, and begins to probe. */
  start(): void {
    for (const url of this.#options.urls) this.#start(url)
    this.#prober?.use(this.servers)
  }

  /** Takes no further requests, and finishes those in flight. */
  retire(): void {
    this.#stop()
    this.#group.retire()
  }

  /** Whether all servers have ended. */
  get hasEnded(): boolean {
    return this.#group.hasEnded
  }

  destroy(): void {
    this.#stop()
    this.#group.destroy()
  }

  #stop(): void {
    this.#isStopped = true
    this.#prober?.stop()
    for (const timer of this.#timers.values()) clearTimeout(timer)
  }

  #serverOf(url: URL, address?: string): Server {
    const place = { url, address }
    const open = (): ServerPool => {
      this.#start(url)
      return this.#options.open(place)
    }
    return new Server(place, open, this.#options.onState)
  }

  #start(url: URL): void {
    const name = hostNameOf(url)
    if (name === undefined || this.#started.has(url)) return
    this.#started.add(url)
    void this.#resolve(url, name)
  }

  async #resolve(url: URL, name: string): Promise<void> {
    let forMs = RETRY_MS
    try {
      const found = await this.#options.lookUp(name)
      forMs = found.forMs
      this.#use(url, found.addresses)
    } catch {
      // The known addresses stay in use. A connection failure is reported with the request.
    }
    if (this.#isStopped) return
    this.#timers.set(url, setTimeout(() => void this.#resolve(url, name), forMs).unref())
  }

  #use(url: URL, addresses: readonly string[]): void {
    if (this.#isStopped || addresses.join() === (this.#resolved.get(url) ?? []).join()) return
    this.#resolved.set(url, addresses)
    const known = new Map(this.#group.servers.map((server) => [server.id, server]))
    const next = this.#options.urls.flatMap((each) => {
      const found = this.#resolved.get(each) ?? []
      return (found.length === 0 ? [undefined] : found).map((address) => this.#serverOf(each, address))
    })
    // Two URLs may differ only in parts that are not used here.
    const byId = new Map(next.map((server) => [server.id, known.get(server.id) ?? server]))
    this.#group.replace([...byId.values()])
    this.#prober?.use(this.servers)
  }
}
