import type { Log } from '../../../shared/log.ts'
import { formatAddress, parseAddress } from './ip-address.ts'

/** The addresses of proxies that are named by their hosts, looked up beside the requests. */
export type TrustedHosts = {
  /** @param address its canonical text */
  has(address: string): boolean
  /** Resolves when each name has been looked up, or after the given time. */
  ready(timeoutMs: number): Promise<void>
  close(): void
}

/** How often a name is looked up: after an answer, and without one. */
const RENEW_MS = 60_000
const RETRY_MS = 5_000

/** For so long after its last answer a name keeps its addresses where its server does not answer. */
const KEEP_MS = 300_000

/** Addresses of one name that are trusted. */
const MAX_ADDRESSES = 256

/** The name has no address, says its server. Any other error is that of a lookup that did not come to an end. */
const noSuchHost = new Set(['ENOTFOUND', 'ENODATA'])

type Host = {
  readonly name: string
  addresses: ReadonlySet<string>
  isPending: boolean
  answeredMs: number
  dueMs: number
  /** The error that is in the log. */
  failure: string
}

/**
 * Looks up names of hosts at start and again each minute, or every five seconds where there was no answer. A name that
 * does not exist has no addresses, so that nobody is trusted for it; where its server does not answer, it keeps those that
 * it had for five minutes. A name is not looked up again before its last lookup has come to an end.
 *
 * @param options.lookup resolves to a name's addresses
 * @param options.now milliseconds of a monotonic clock
 */
export function createTrustedHosts(options: {
  readonly hosts: readonly string[]
  readonly lookup: (host: string) => Promise<readonly string[]>
  readonly now: () => number
  readonly log: Log
}): TrustedHosts {
  const { lookup, now, log } = options
  const hosts = options.hosts.map((name): Host => {
    return { name, addresses: new Set(), isPending: false, answeredMs: -Infinity, dueMs: now(), failure: '' }
  })
  let all: ReadonlySet<string> = new Set()
  let isClosed = false

  function setAddresses(host: Host, addresses: ReadonlySet<string>): void {
    const isSame = addresses.size === host.addresses.size && addresses.isSubsetOf(host.addresses)
    if (isSame) return
    host.addresses = addresses
    all = new Set(hosts.flatMap((other) => [...other.addresses]))
    log.info(
      { host: host.name, addresses: [...addresses] },
      'trusted proxies: the addresses of a host have changed',
    )
  }

  function fail(host: Host, error: unknown): void {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    if (noSuchHost.has(code)) setAddresses(host, new Set())
    if (code === host.failure) return
    host.failure = code
    const trusted =
      host.addresses.size === 0 ? 'nobody is trusted for it' : 'its last addresses stay trusted for a while'
    log.warn(
      { host: host.name, reason: code },
      `trusted proxies: the name of a host does not resolve, ${trusted}`,
    )
  }

  async function renew(host: Host): Promise<void> {
    host.isPending = true
    try {
      const found = await lookup(host.name)
      if (isClosed) return
      const addresses = new Set(found.slice(0, MAX_ADDRESSES).flatMap(canonical))
      if (found.length > MAX_ADDRESSES)
        log.warn(
          { host: host.name },
          `trusted proxies: only ${MAX_ADDRESSES} addresses of a host are trusted`,
        )
      host.answeredMs = now()
      host.dueMs = now() + RENEW_MS
      host.failure = ''
      setAddresses(host, addresses)
    } catch (error) {
      if (isClosed) return
      host.dueMs = now() + RETRY_MS
      fail(host, error)
    } finally {
      host.isPending = false
    }
  }

  /** Expires addresses that no answer has confirmed, and looks up the names that are due. */
  function look(): Promise<unknown> {
    for (const host of hosts) if (now() - host.answeredMs >= KEEP_MS) setAddresses(host, new Set())
    return Promise.all(hosts.filter((host) => !host.isPending && now() >= host.dueMs).map(renew))
  }

  const first = look()
  const timer = setInterval(() => void look(), RETRY_MS).unref()

  return {
    has: (address) => all.has(address),
    async ready(timeoutMs) {
      let limit: NodeJS.Timeout | undefined
      const timeout = new Promise((resolve) => (limit = setTimeout(resolve, timeoutMs)))
      await Promise.race([first, timeout])
      clearTimeout(limit)
    },
    close() {
      isClosed = true
      clearInterval(timer)
    },
  }
}

/** In the form in which peers are compared: without a zone, IPv4 dotted. */
function canonical(text: string): string[] {
  const address = parseAddress(text.split('%', 1)[0] ?? '')
  return address ? [formatAddress(address)] : []
}
