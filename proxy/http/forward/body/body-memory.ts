import type { TableUse } from '../../../telemetry/telemetry.ts'

/**
 * Memory for bodies that all clients share. One client gets at most its maximum, and no more than remains free, as with `ClientShares`. No
 * matter how many clients use the memory, some is left for the next one.
 */
export class BodyMemory {
  readonly #totalBytes: number
  readonly #maxClientBytes: number
  readonly #ofClients = new Map<string, number>()
  #bytes = 0
  #denials = 0

  constructor(totalBytes: number, maxClientBytes: number) {
    this.#totalBytes = totalBytes
    this.#maxClientBytes = maxClientBytes
  }

  /** Returns whether there is room. */
  reserve(client: string, bytes: number): boolean {
    const ofClient = (this.#ofClients.get(client) ?? 0) + bytes
    const free = this.#totalBytes - this.#bytes - bytes
    if (ofClient > Math.min(this.#maxClientBytes, free)) {
      this.#denials += 1
      return false
    }
    this.#bytes += bytes
    this.#ofClients.set(client, ofClient)
    return true
  }

  release(client: string, bytes: number): void {
    this.#bytes -= bytes
    const left = (this.#ofClients.get(client) ?? 0) - bytes
    if (left > 0) this.#ofClients.set(client, left)
    else this.#ofClients.delete(client)
  }

  /** `evictions` counts the bodies that did not fit. */
  readUse(): TableUse {
    return { size: this.#bytes, capacity: this.#totalBytes, evictions: this.#denials }
  }
}
