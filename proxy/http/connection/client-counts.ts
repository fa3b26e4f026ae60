/** How many connections each client has open. Connections of trusted proxies have no client, and are not counted. */
export class ClientCounts {
  readonly #counts = new Map<string, number>()

  /** The number of clients with a connection. */
  get size(): number {
    return this.#counts.size
  }

  of(client: string | undefined): number {
    return client === undefined ? 0 : (this.#counts.get(client) ?? 0)
  }

  add(client: string | undefined): void {
    if (client !== undefined) this.#counts.set(client, this.of(client) + 1)
  }

  remove(client: string | undefined): void {
    if (client === undefined) return
    const left = this.of(client) - 1
    if (left === 0) this.#counts.delete(client)
    else this.#counts.set(client, left)
  }

  /** The client with the most connections, and their number. */
  largest(): readonly [client: string, connections: number] | undefined {
    let largest: readonly [string, number] | undefined
    for (const entry of this.#counts) if (!largest || entry[1] > largest[1]) largest = entry
    return largest
  }
}
