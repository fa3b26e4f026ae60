import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { orderAddresses } from './address-order.ts'
import { createDnsClient, queryDns, type AskDns } from './dns-query.ts'
import { findHost, hostKey, parseHosts } from './hosts-file.ts'
import { NameError, saysNoSuchName } from './name-error.ts'
import { hasOtherSources, parseResolverSettings, type ResolverSettings } from './resolver-settings.ts'
import { createSystemLookup } from './system-lookup.ts'
import { createCachedFile } from './cached-file.ts'

/** The addresses of a name (at least one), in the order in which to connect to them, and their TTL. */
export type Found = { readonly addresses: readonly string[]; readonly forMs: number }

/** Looks a name up now. Rejects with a NameError. */
export type FindAddresses = (name: string) => Promise<Found>

export type FinderOptions = {
  readonly hostsFile: string
  readonly resolvConf: string
  readonly nsswitchConf: string
  readonly createDnsClient: (settings: ResolverSettings) => AskDns
  /** `getaddrinfo`, for names that neither the hosts file nor DNS has. */
  readonly systemLookup: (name: string) => Promise<readonly string[]>
  /** Whether the system has other sources regardless of `nsswitch.conf`. */
  readonly hasOtherSources: boolean
}

/** How long answers without a TTL are used: names of the hosts file, and answers of `getaddrinfo`. */
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
 * Looks names up as the system does (hosts file, search domains, DNS), but without its threads. `getaddrinfo` is called only for names that
 * neither the hosts file nor DNS has, and only where the system has other sources.
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
      // The system has not answered: the name may still exist.
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

/** Returns the address if the name is one, in any form that libc reads, such as `127.1`. */
function addressIn(name: string): string | undefined {
  if (isIP(name) > 0) return name
  if (!/^[0-9a-fx.]*\d$|^[0-9a-fx.]*0x[0-9a-f]*$/i.test(name)) return undefined
  const { hostname: written } = URL.parse(`http://${name}`) ?? { hostname: '' }
  return isIP(written) === 4 ? written : undefined
}
