/** The resolver options of `/etc/resolv.conf`. c-ares reads the name servers itself. */
export type ResolverSettings = {
  /** Domains to append to a name, in this order. */
  readonly search: readonly string[]
  /** A name with at least this many dots is first queried as given. */
  readonly ndots: number
  /** How long to wait for a name server at the first attempt; the second attempt waits twice as long. */
  readonly timeoutMs: number
  /** How many times each name server is asked. */
  readonly attempts: number
}

/** The limits of resolv.conf(5). */
const MAX_NDOTS = 15
const MAX_TIMEOUT_S = 30
const MAX_ATTEMPTS = 5

/** The defaults of c-ares. They ask a second name server soon enough for a connection that may take five seconds to open. */
const DEFAULT_TIMEOUT_MS = 2_000
const DEFAULT_ATTEMPTS = 2

/**
 * Reads the text of `/etc/resolv.conf` as libc does (resolv.conf(5)): the last of several `search` and `domain` lines counts.
 *
 * @param env `LOCALDOMAIN` overrides the search domains of the file, `RES_OPTIONS` adds to its options
 * @param hostname of this machine: its domain is searched if no other is given
 */
export function parseResolverSettings(
  text: string,
  env: Readonly<Record<string, string | undefined>>,
  hostname: string,
): ResolverSettings {
  let search: readonly string[] | undefined
  const options: string[] = []
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line.trim().split(/\s+/)
    if (keyword === 'search') search = values
    else if (keyword === 'domain') search = values.slice(0, 1)
    else if (keyword === 'options') options.push(...values)
  }
  if (env['LOCALDOMAIN'] !== undefined) search = words(env['LOCALDOMAIN'])
  options.push(...words(env['RES_OPTIONS'] ?? ''))
  const optionOf = (name: string): number | undefined => {
    const found = options.findLast((option) => option.startsWith(`${name}:`))
    const value = Number.parseInt(found?.slice(name.length + 1) ?? '', 10)
    return Number.isInteger(value) && value >= 0 ? value : undefined
  }
  const ownDomain = hostname.split('.').slice(1).join('.')
  const timeoutS = optionOf('timeout')
  return {
    search: (search ?? [ownDomain])
      .map((domain) => domain.replace(/^\.|\.$/g, ''))
      .filter((domain) => domain !== ''),
    ndots: Math.min(MAX_NDOTS, optionOf('ndots') ?? 1),
    timeoutMs:
      timeoutS === undefined ? DEFAULT_TIMEOUT_MS : Math.min(MAX_TIMEOUT_S, Math.max(1, timeoutS)) * 1000,
    attempts: Math.min(MAX_ATTEMPTS, Math.max(1, optionOf('attempts') ?? DEFAULT_ATTEMPTS)),
  }
}

/**
 * Returns the absolute names to query, in order, until one has an address: the name with each search domain, and the name as given. The
 * latter comes first if it has at least `ndots` dots, otherwise last. A name with a final dot is absolute.
 */
export function candidatesOf(name: string, { search, ndots }: ResolverSettings): readonly string[] {
  if (name.endsWith('.')) return [name.slice(0, -1)]
  const dots = name.split('.').length - 1
  const searched = search.map((domain) => `${name}.${domain}`)
  return dots >= ndots ? [name, ...searched] : [...searched, name]
}

/**
 * Whether the line `hosts:` of `/etc/nsswitch.conf` lists other sources than the hosts file and DNS, such as multicast DNS or a directory
 * (nsswitch.conf(5)).
 *
 * @param text of the file; empty if it does not exist, as with musl, which has no other sources
 */
export function hasOtherSources(text: string): boolean {
  const [, sources = ''] = /^[ \t]*hosts:([^#\n]*)/m.exec(text) ?? []
  return words(sources.replace(/\[[^\]]*\]/g, ' ')).some((source) => source !== 'files' && source !== 'dns')
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '')
}
