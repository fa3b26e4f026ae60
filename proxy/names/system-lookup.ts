import { lookup } from 'node:dns/promises'

/**
 * Looks names up by `getaddrinfo`, one at a time. Each lookup blocks one of libuv's threads until it ends, and cannot be cancelled; even
 * the process cannot exit before it. This is for names that only the system can resolve: multicast DNS, directories, other systems than
 * Linux.
 *
 * @param find `getaddrinfo`
 * @returns rejects with the codes of `dns.lookup`
 */
export function createSystemLookup(
  find = async (name: string): Promise<readonly string[]> =>
    (await lookup(name, { all: true })).map(({ address }) => address),
): (name: string) => Promise<readonly string[]> {
  let last: Promise<unknown> = Promise.resolve()
  return (name) => {
    const found = last.then(() => find(name))
    last = found.catch(() => undefined)
    return found
  }
}
