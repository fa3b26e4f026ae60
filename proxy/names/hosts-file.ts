import { isIP } from 'node:net'

/** The addresses of each name, in the order of the lines. Names are in lower case. */
export type Hosts = ReadonlyMap<string, readonly string[]>

/** Parses the text of `/etc/hosts`: each line has an address and its names, and `#` begins a comment (hosts(5)). */
export function parseHosts(text: string): Hosts {
  const hosts = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    if (isIP(address) === 0) continue
    for (const name of names) {
      const key = hostKey(name)
      const addresses = hosts.get(key)
      if (!addresses) hosts.set(key, [address])
      else if (!addresses.includes(address)) addresses.push(address)
    }
  }
  return hosts
}

/**
 * Returns the addresses of a name that needs no name server: a name in the hosts file, or `localhost` and the names below it, which mean
 * this machine if the file does not list them (RFC 6761 section 6.3).
 */
export function findHost(hosts: Hosts, name: string): readonly string[] | undefined {
  const key = hostKey(name)
  const known = hosts.get(key)
  if (known) return known
  return key === 'localhost' || key.endsWith('.localhost') ? ['127.0.0.1', '::1'] : undefined
}

/** Returns the canonical form of a name for comparison: in lower case, without the final dot of an absolute name. */
export function hostKey(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}
