import { hash } from 'node:crypto'
import { compileClientLists, type ClientLists } from '../../limits/clients/lists/client-lists.ts'
import { isHashedKey } from '../../limits/keys/partition-key.ts'
import type { ListEntry } from '../../policy.ts'
import { parseAddressRange } from '../../request/addresses/ip-address.ts'
import { showValue } from '../../../shared/settings/problems.ts'
import { CommandError, status } from '../output.ts'

/** Clients whose requests are left out, such as an abuser for whom limits should not be calculated. */
export type Excluded = {
  readonly lists: ClientLists
  /** The names that a report shows for clients whose key may be secret: `h:…`. */
  readonly keys: ReadonlySet<string>
}

/** @param clients addresses, networks, `header:NAME=VALUE`, or `h:…` from a report */
export function readExcluded(clients: readonly string[]): Excluded {
  const entries: ListEntry[] = []
  const keys = new Set<string>()
  for (const client of clients) {
    const [, name, value] = /^header:([^=]+)=(.+)$/is.exec(client) ?? []
    if (isHashedKey(client)) keys.add(client)
    else if (name !== undefined && value !== undefined)
      entries.push({ kind: 'header', name: name.toLowerCase(), sha256: hash('sha256', value) })
    else if (parseAddressRange(client) !== undefined) entries.push({ kind: 'ip', ranges: [client] })
    else
      throw new CommandError(
        `--exclude needs an address, a network, header:NAME=VALUE, or h:… as a report has it, got ${showValue(client)}`,
        status.usage,
      )
  }
  return { lists: compileClientLists({ allowList: entries, denyList: [], rules: [] }), keys }
}
