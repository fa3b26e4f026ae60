import { lookup, resolve4, resolve6 } from 'node:dns/promises'
import { isIP } from 'node:net'

/**
 * The addresses of a name, and how long they are good for. None where it has at most one IPv4 and one IPv6 address: these are
 * mostly of one machine, which may listen on one of them only, and Node connects to the one that answers.
 */
export type Addresses = { readonly addresses: readonly string[]; readonly forMs: number }

export type LookUp = (name: string) => Promise<Addresses>

/** Without a TTL: names of hosts files, and of a resolver that is not DNS. */
const USUAL_MS = 5_000
const SHORTEST_MS = 1_000
const LONGEST_MS = 30_000

/**
 * Looks a name up as connections do: hosts file, search domains and DNS. The lookup does not tell a TTL, so DNS is asked for it
 * besides; without an answer it is 5 s. Rejects where the name does not resolve.
 */
export async function lookUpAddresses(name: string): Promise<Addresses> {
  const [found, seconds] = await Promise.all([lookup(name, { all: true }), shortestTtl(name)])
  const ttlMs = seconds === undefined ? USUAL_MS : seconds * 1000
  return {
    addresses: isOfOneMachine(found) ? [] : [...new Set(found.map(({ address }) => address))].sort(),
    forMs: Math.min(LONGEST_MS, Math.max(SHORTEST_MS, ttlMs)),
  }
}

function isOfOneMachine(found: readonly { readonly address: string; readonly family: number }[]): boolean {
  const ofFamily = (wanted: number): Set<string> =>
    new Set(found.filter(({ family }) => family === wanted).map(({ address }) => address))
  return ofFamily(4).size <= 1 && ofFamily(6).size <= 1
}

async function shortestTtl(name: string): Promise<number | undefined> {
  const asked = await Promise.allSettled([resolve4(name, { ttl: true }), resolve6(name, { ttl: true })])
  const ttls = asked.flatMap((answer) =>
    answer.status === 'fulfilled' ? answer.value.map(({ ttl }) => ttl) : [],
  )
  return ttls.length === 0 ? undefined : Math.min(...ttls)
}

/** The host name in a URL; undefined for an IP address, which needs no lookup. */
export function hostNameOf({ hostname }: URL): string | undefined {
  return isIP(hostname.replace(/^\[|\]$/g, '')) > 0 ? undefined : hostname
}
