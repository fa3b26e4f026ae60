/** Bytes that are buffered for a client on one of its connections. */
export type Holding = { readonly client: string; readonly connection: object; readonly bytes: number }

type Holder<Kind> = { bytes: number; readonly connections: { bytes: number; readonly holding: Kind }[] }

/**
 * Chooses connections to close until `bytesToFree` are freed: each time, the largest connection of the client with the most bytes.
 *
 * @returns one holding of each chosen connection
 */
export function chooseLargest<Kind extends Holding>(holdings: readonly Kind[], bytesToFree: number): Kind[] {
  const holders = groupByClient(holdings).sort((a, b) => a.bytes - b.bytes)
  const chosen: Kind[] = []
  for (let freed = 0; freed < bytesToFree;) {
    const holder = holders.pop()
    const largest = holder?.connections.pop()
    if (!holder || !largest) break
    chosen.push(largest.holding)
    freed += largest.bytes
    holder.bytes -= largest.bytes
    const at = holders.findLastIndex(({ bytes }) => bytes <= holder.bytes)
    holders.splice(at + 1, 0, holder)
  }
  return chosen
}

function groupByClient<Kind extends Holding>(holdings: readonly Kind[]): Holder<Kind>[] {
  const clients = new Map<string, Map<object, { bytes: number; readonly holding: Kind }>>()
  for (const holding of holdings) {
    let connections = clients.get(holding.client)
    if (!connections) {
      connections = new Map<object, { bytes: number; readonly holding: Kind }>()
      clients.set(holding.client, connections)
    }
    const connection = connections.get(holding.connection)
    if (connection) connection.bytes += holding.bytes
    else connections.set(holding.connection, { bytes: holding.bytes, holding })
  }
  return [...clients.values()].map((connections) => ({
    bytes: connections.values().reduce((sum, { bytes }) => sum + bytes, 0),
    connections: [...connections.values()].sort((a, b) => a.bytes - b.bytes),
  }))
}
