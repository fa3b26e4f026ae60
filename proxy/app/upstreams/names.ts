import dns from 'node:dns'
import type { LookupFunction } from 'node:net'
import { syncBuiltinESMExports } from 'node:module'
import { createFinder } from '../../names/find-addresses.ts'
import { Names } from '../../names/names.ts'

const { lookup: systemLookup } = dns

/** Creates the resolver of names for this process. */
export function composeNames(): Names {
  return new Names({ find: createFinder(), now: () => performance.now() })
}

/**
 * Replaces `dns.lookup` in the whole process: `fetch` and parts of ioredis (Sentinel, a cluster's subscriber) open connections themselves
 * and do not accept a lookup function. A lookup by `getaddrinfo` keeps the process from exiting until it has finished, which takes ten
 * seconds and more if the name server does not answer.
 */
export function lookUpEverywhere({ lookup }: Names): void {
  const lookupAsDns = (name: unknown, ...rest: readonly unknown[]): void => {
    const callback = rest.at(-1)
    const [given] = rest
    const options = typeof given === 'number' ? { family: given } : given
    if (typeof name !== 'string' || name === '' || typeof callback !== 'function')
      // The system's lookup answers at once without a name, and reports wrong arguments.
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
