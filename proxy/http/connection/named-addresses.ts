import type { Socket } from 'node:net'
import type { ConnectionAddresses } from '../message/client-request.ts'

type Named = { readonly socket: Socket; readonly address: string | undefined }

/** Remembers, for open connections of trusted proxies, the client's address in the PROXY header, or that the header has no address. */
export class NamedAddresses {
  // Keyed by the addresses and ports of both ends, because a TLS socket shares nothing else with the socket beneath it. A load balancer may
  // use one port of its own for connections to two addresses of the gateway.
  readonly #named = new Map<string, Named>()

  /** The client's address; undefined without a PROXY header, or if the header has no address. */
  of(socket: ConnectionAddresses): string | undefined {
    return this.#named.size > 0 ? this.#named.get(keyOf(socket))?.address : undefined
  }

  /** Whether a connection came with a PROXY header without an address. */
  isWithoutClient(socket: ConnectionAddresses): boolean {
    const named = this.#named.size > 0 ? this.#named.get(keyOf(socket)) : undefined
    return named !== undefined && named.address === undefined
  }

  /** @param address undefined if the PROXY header has no address */
  add(socket: Socket, address: string | undefined): void {
    const key = keyOf(socket)
    this.#named.set(key, { socket, address })
    socket.once('close', () => {
      if (this.#named.get(key)?.socket === socket) this.#named.delete(key)
    })
  }
}

function keyOf(socket: ConnectionAddresses): string {
  const { remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 } = socket
  return `${remotePort} ${localPort} ${remoteAddress} ${localAddress}`
}
