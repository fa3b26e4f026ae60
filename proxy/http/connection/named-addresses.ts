import type { Socket } from 'node:net'
import type { ConnectionAddresses } from '../message/client-request.ts'

type Named = { readonly socket: Socket; readonly address: string | undefined }

/**
 * What the PROXY headers of trusted proxies say about their connections while these are open: the client's address, or that there is
 * none.
 */
export class NamedAddresses {
  // By the addresses and ports of both ends, as a TLS socket shares nothing else with the socket beneath it. A load balancer may use one
  // port of its own for connections to two addresses of the gateway.
  readonly #named = new Map<string, Named>()

  /** The client's address; undefined without a PROXY header, or if it has none. */
  of(socket: ConnectionAddresses): string | undefined {
    return this.#named.size > 0 ? this.#named.get(keyOf(socket))?.address : undefined
  }

  /** Whether the PROXY header of a connection was one without an address. */
  isWithoutClient(socket: ConnectionAddresses): boolean {
    const named = this.#named.size > 0 ? this.#named.get(keyOf(socket)) : undefined
    return named !== undefined && named.address === undefined
  }

  /** @param address undefined if the PROXY header has none */
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
