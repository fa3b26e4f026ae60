import { isIP } from 'node:net'

/** Addresses by name, in lower case, in the order of the lines. */
export type Hosts = ReadonlyMap<string, readonly string[]>

/** Reads the text of `/etc/hosts`: an address a line with its names, `#` begins a comment (hosts(5)). */
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
 * The addresses of a name that needs no name server: one of the hosts file, or `localhost`, which is this machine whatever the file
 * says or lacks (RFC 6761 section 6.3).
 */
export function findHost(hosts: Hosts, name: string): readonly string[] | undefined {
  const key = hostKey(name)
  const known = hosts.get(key)
  if (known) return known
  return key === 'localhost' || key.endsWith('.localhost') ? ['127.0.0.1', '::1'] : undefined
}

/** The canonical form of a name for comparison: without letter case and the final dot of an absolute name. */
export function hostKey(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}
