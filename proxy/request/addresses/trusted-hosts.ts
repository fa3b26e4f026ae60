import type { Log } from '../../../shared/log.ts'
import { endedWithin } from '../../../shared/within.ts'
import { formatAddress, parseAddress } from './ip-address.ts'

/** Time until a name is looked up again, after an answer and after a failure. */
const RENEW_MS = 60_000
const RETRY_MS = 5_000

/** How long a name keeps its addresses after the last answer, while the name server does not answer. */
const KEEP_MS = 300_000

/** Maximum number of trusted addresses per name. */
const MAX_ADDRESSES = 256

/** Error codes for an answer that the name has no address. Any other error means that the lookup did not complete. */
const noSuchHost = new Set(['ENOTFOUND', 'ENODATA'])

type Host = {
  readonly name: string
  addresses: ReadonlySet<string>
  isPending: boolean
  answeredMs: number
  dueMs: number
  /** The error that was logged last. */
  failure: string
}

/**
 * The addresses of proxies that are configured by host name. Names are looked up in the background: at start and again each minute, or
 * every five seconds after a failure. A name that does not exist has no addresses, so that no peer is trusted for it. While the name server
 * does not answer, a name keeps its addresses for five minutes. A name has only one lookup at a time.
 */
export class TrustedHosts {
  readonly #lookup: (host: string) => Promise<readonly string[]>
  readonly #now: () => number
  readonly #log: Log
  readonly #hosts: readonly Host[]
  /** The addresses of all hosts. */
  #all: ReadonlySet<string> = new Set()
  readonly #first: Promise<unknown>
  readonly #timer: NodeJS.Timeout
  #isClosed = false

  /**
   * @param options.lookup resolves to a name's addresses
   * @param options.now milliseconds of a monotonic clock
   */
  constructor(options: {
    readonly hosts: readonly string[]
    readonly lookup: (host: string) => Promise<readonly string[]>
    readonly now: () => number
    readonly log: Log
  }) {
    const { hosts, lookup, now, log } = options
    this.#lookup = lookup
    this.#now = now
    this.#log = log
    this.#hosts = hosts.map((name): Host => {
      return {
        name,
        addresses: new Set(),
        isPending: false,
        answeredMs: -Infinity,
        dueMs: now(),
        failure: '',
      }
    })
    this.#first = this.#look()
    this.#timer = setInterval(() => void this.#look(), RETRY_MS).unref()
  }

  /** @param address the canonical text of an address */
  has(address: string): boolean {
    return this.#all.has(address)
  }

  /** Resolves when each name has been looked up, or after the given time. */
  async ready(timeoutMs: number): Promise<void> {
    await endedWithin(timeoutMs, this.#first)
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
  }

  /** Drops addresses that no recent answer has confirmed, and looks up the names that are due. */
  #look(): Promise<unknown> {
    const nowMs = this.#now()
    for (const host of this.#hosts)
      if (nowMs - host.answeredMs >= KEEP_MS) this.#setAddresses(host, new Set())
    const due = this.#hosts.filter((host) => !host.isPending && nowMs >= host.dueMs)
    return Promise.all(due.map((host) => this.#renew(host)))
  }

  async #renew(host: Host): Promise<void> {
    host.isPending = true
    try {
      const found = await this.#lookup(host.name)
      if (!this.#isClosed) this.#found(host, found)
    } catch (error) {
      if (!this.#isClosed) this.#failed(host, error)
    } finally {
      host.isPending = false
    }
  }

  #found(host: Host, found: readonly string[]): void {
    const addresses = new Set(found.slice(0, MAX_ADDRESSES).flatMap(canonical))
    if (found.length > MAX_ADDRESSES)
      this.#log.warn(
        { host: host.name },
        `trusted proxies: only ${MAX_ADDRESSES} addresses of a host are trusted`,
      )
    host.answeredMs = this.#now()
    host.dueMs = this.#now() + RENEW_MS
    host.failure = ''
    this.#setAddresses(host, addresses)
  }

  #failed(host: Host, error: unknown): void {
    host.dueMs = this.#now() + RETRY_MS
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    if (noSuchHost.has(code)) this.#setAddresses(host, new Set())
    if (code === host.failure) return
    host.failure = code
    const trusted =
      host.addresses.size === 0 ? 'no address is trusted for it' : 'its last addresses stay trusted for now'
    this.#log.warn(
      { host: host.name, reason: code },
      `trusted proxies: cannot resolve a host name; ${trusted}`,
    )
  }

  #setAddresses(host: Host, addresses: ReadonlySet<string>): void {
    const isSame = addresses.size === host.addresses.size && addresses.isSubsetOf(host.addresses)
    if (isSame) return
    host.addresses = addresses
    this.#all = new Set(this.#hosts.flatMap((other) => [...other.addresses]))
    this.#log.info(
      { host: host.name, addresses: [...addresses] },
      'trusted proxies: the addresses of a host have changed',
    )
  }
}

/** Returns the form in which peers are compared: without a zone, dotted for IPv4. */
function canonical(text: string): string[] {
  const address = parseAddress(text.split('%', 1)[0] ?? '')
  return address ? [formatAddress(address)] : []
}
