import dns from 'node:dns'
import type { LookupFunction } from 'node:net'
import { syncBuiltinESMExports } from 'node:module'
import { createFinder } from '../../names/find-addresses.ts'
import { Names } from '../../names/names.ts'

const { lookup: systemLookup } = dns

/** The resolver of names for this process. */
export function composeNames(): Names {
  return new Names({ find: createFinder(), now: () => performance.now() })
}

/**
 * Makes all of this process look names up this way, in place of `dns.lookup`: `fetch` and parts of ioredis (Sentinel, a cluster's
 * subscriber) open connections by themselves and take no function for it. A lookup by `getaddrinfo` keeps the process from ending
 * until it is over, ten seconds and more where the name server is silent.
 */
export function lookUpEverywhere({ lookup }: Names): void {
  const lookupAsDns = (name: unknown, ...rest: readonly unknown[]): void => {
    const callback = rest.at(-1)
    const [given] = rest
    const options = typeof given === 'number' ? { family: given } : given
    if (typeof name !== 'string' || name === '' || typeof callback !== 'function')
      // Without a name it answers at once, and wrong arguments are for it to complain of.
      return void Reflect.apply(systemLookup, dns, [name, ...rest])
    lookup(
      name,
      typeof options === 'object' && options !== null ? options : {},
      callback as Parameters<LookupFunction>[2],
    )
  }
  Object.assign(dns, { lookup: lookupAsDns })
  syncBuiltinESMExports()
}
