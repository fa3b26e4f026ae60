import { serverAddresses, type LookUp } from '../../http/upstream/servers/addresses.ts'
import { reachableAddresses } from '../../names/address-order.ts'
import type { Names } from '../../names/names.ts'

/** How long after the answer that a name does not exist it is looked up again. */
const RETRY_MS = 5_000

/**
 * Creates the lookup of the servers of a name. It rejects if the name servers do not answer, while the last addresses stay in use. If the
 * name does not exist, or has not been confirmed for a day, it has no addresses.
 */
export function createServerLookUp(names: Names): LookUp {
  return async (name) => {
    try {
      const { addresses, forMs } = await names.resolve(name)
      return { addresses: serverAddresses(reachableAddresses(addresses)), forMs }
    } catch (error) {
      if (names.hasAddresses(name)) throw error
      return { addresses: [], forMs: RETRY_MS }
    }
  }
}
