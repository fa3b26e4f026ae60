import { isIP } from 'node:net'

/**
 * The addresses of a name, and for how many milliseconds they are valid. Empty if the name has at most one IPv4 and one IPv6 address: these
 * usually belong to one machine, which may listen on only one of them, and Node connects to the one that answers. Empty too if the name
 * does not exist: connecting to it fails.
 */
export type Addresses = { readonly addresses: readonly string[]; readonly forMs: number }

/** Looks a name up. Rejects if there was no answer: the addresses of the last one stay in use. */
export type LookUp = (name: string) => Promise<Addresses>

/** The addresses of a name that count as separate servers: all of them, or an empty list. */
export function serverAddresses(found: readonly string[]): readonly string[] {
  return isOfOneMachine(found) ? [] : [...new Set(found)].sort()
}

function isOfOneMachine(found: readonly string[]): boolean {
  const ofFamily = (family: number): Set<string> =>
    new Set(found.filter((address) => isIP(address) === family))
  return ofFamily(4).size <= 1 && ofFamily(6).size <= 1
}

/** The host name in a URL; undefined for an IP address, which needs no lookup. */
export function hostNameOf({ hostname }: URL): string | undefined {
  return isIP(hostname.replace(/^\[|\]$/g, '')) > 0 ? undefined : hostname
}
