import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { orderAddresses } from './address-order.ts'
import { createDnsClient, queryDns, type AskDns } from './dns-query.ts'
import { findHost, hostKey, parseHosts } from './hosts-file.ts'
import { NameError, saysNoSuchName } from './name-error.ts'
import { hasOtherSources, parseResolverSettings, type ResolverSettings } from './resolver-settings.ts'
import { createSystemLookup } from './system-lookup.ts'
import { createCachedFile } from './cached-file.ts'

/** The addresses of a name, in the order in which to connect to them, never empty, and their TTL. */
export type Found = { readonly addresses: readonly string[]; readonly forMs: number }

/** Looks a name up now. Rejects with a NameError. */
export type FindAddresses = (name: string) => Promise<Found>

export type FinderOptions = {
  readonly hostsFile: string
  readonly resolvConf: string
  readonly nsswitchConf: string
  readonly createDnsClient: (settings: ResolverSettings) => AskDns
  /** `getaddrinfo`, for names that are in neither. */
  readonly systemLookup: (name: string) => Promise<readonly string[]>
  /** Whether the system knows other sources whatever `nsswitch.conf` says. */
  readonly hasOtherSources: boolean
}

/** Validity of names in the hosts file, and of answers that are not from DNS. */
const WITHOUT_TTL_MS = 5_000
const MIN_MS = 1_000
const MAX_MS = 30_000

const ofThisSystem: FinderOptions = {
  hostsFile:
    process.platform === 'win32'
      ? `${process.env['SystemRoot'] ?? 'C:\\Windows'}\\System32\\drivers\\etc\\hosts`
      : '/etc/hosts',
  resolvConf: '/etc/resolv.conf',
  nsswitchConf: '/etc/nsswitch.conf',
  createDnsClient,
  systemLookup: createSystemLookup(),
  hasOtherSources: process.platform !== 'linux',
}

/**
 * Looks names up as the system does, hosts file, search domains and DNS, but without its threads: `getaddrinfo` is asked only for
 * names that neither knows, and only where the system has other sources.
 */
export function createFinder(options: Partial<FinderOptions> = {}): FindAddresses {
  const system = { ...ofThisSystem, ...options }
  const hosts = createCachedFile(system.hostsFile, parseHosts)
  const resolver = createCachedFile(system.resolvConf, (text) => {
    const settings = parseResolverSettings(text, process.env, hostname())
    return { settings, ask: system.createDnsClient(settings) }
  })
  const others = createCachedFile(system.nsswitchConf, hasOtherSources)

  async function askSystem(name: string, failure: unknown): Promise<Found> {
    if (!system.hasOtherSources && !(await others())) throw failure
    try {
      const addresses = await system.systemLookup(name)
      if (addresses.length > 0) return { addresses, forMs: WITHOUT_TTL_MS }
    } catch (error) {
      // A name that DNS has not answered may still exist.
      if (!saysNoSuchName(error)) throw new NameError('EAI_AGAIN', name, error)
    }
    throw failure
  }

  return async (name) => {
    const literal = addressIn(name)
    if (literal !== undefined) return { addresses: [literal], forMs: MAX_MS }
    const known = findHost(await hosts(), name)
    if (known) return { addresses: orderAddresses(known), forMs: WITHOUT_TTL_MS }
    const { settings, ask } = await resolver()
    try {
      const { addresses, ttlSeconds } = await queryDns(name, settings, ask)
      const forMs = Math.min(MAX_MS, Math.max(MIN_MS, ttlSeconds * 1000))
      return { addresses: orderAddresses(addresses), forMs }
    } catch (error) {
      return askSystem(hostKey(name), error)
    }
  }
}

/** The address that a name is, in the forms that libc reads too, such as `127.1`. */
function addressIn(name: string): string | undefined {
  if (isIP(name) > 0) return name
  if (!/^[0-9a-fx.]*\d$|^[0-9a-fx.]*0x[0-9a-f]*$/i.test(name)) return undefined
  const { hostname: written } = URL.parse(`http://${name}`) ?? { hostname: '' }
  return isIP(written) === 4 ? written : undefined
}
