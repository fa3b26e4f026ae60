import type { Server, Socket } from 'node:net'
import type { AddressReader, Peer } from '../client-address.ts'
import type { Telemetry } from '../telemetry.ts'

export type GateOptions = {
  /** Connections at a time. */
  readonly maxConnections: number
  /** Connections at a time of one client, who is an IPv4 address or an IPv6 /64; 0 is no limit. */
  readonly maxConnectionsPerClient: number
  readonly addresses: AddressReader
  /**
   * Where trusted proxies name their client at the beginning of a connection: reads that off. Resolves with the address
   * that it names, undefined where the peer speaks for itself; rejects where there is no such beginning.
   */
  readonly readNamedAddress: ((socket: Socket) => Promise<string | undefined>) | undefined
  readonly telemetry: Telemetry
}

/** Stands before a server and decides which connections it gets to see. */
export type ConnectionGate = {
  /** The address of who is at the other end: as a trusted proxy has named it, else the connection's own. */
  addressOf(socket: ConnectionAddresses): string | undefined
  readonly size: number
  /** How many connections have been let in so far. */
  readonly accepted: number
  /** Closes the connections that have not brought a byte yet. */
  closeUnused(): void
  /** Breaks off every connection. */
  closeAll(): void
}

/** What tells a connection from all others, also on the socket that TLS puts around it. */
export type ConnectionAddresses = Pick<Socket, 'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort'>

type Named = { readonly socket: Socket; readonly address: string }

/**
 * Lets connections through to a server's own listeners within limits. Those beyond them are closed without a word:
 * an answer would have to be waited for. Trusted proxies carry the connections of many and are counted in total only.
 */
export function gateConnections(server: Server, options: GateOptions): ConnectionGate {
  const { maxConnections, maxConnectionsPerClient, addresses, readNamedAddress, telemetry } = options
  const open = new Set<Socket>()
  const perClient = new Map<string, number>()
  let accepted = 0
  // By the connection's own addresses, which with TLS are all that the socket of a request shares with this one. Both
  // ends: a load balancer may use one port of its own for connections to two addresses of ours.
  const named = new Map<string, Named>()
  const serve = server.listeners('connection')
  server.removeAllListeners('connection')

  const countClient = (socket: Socket, { client, trusted }: Peer): boolean => {
    if (trusted || maxConnectionsPerClient === 0) return true
    const { partition } = client
    const count = perClient.get(partition) ?? 0
    if (count >= maxConnectionsPerClient) return false
    perClient.set(partition, count + 1)
    socket.once('close', () => {
      const left = (perClient.get(partition) ?? 1) - 1
      if (left === 0) perClient.delete(partition)
      else perClient.set(partition, left)
    })
    return true
  }
  const rememberName = (socket: Socket, address: string): void => {
    const key = keyOf(socket)
    named.set(key, { socket, address })
    socket.once('close', () => {
      if (named.get(key)?.socket === socket) named.delete(key)
    })
  }
  const letIn = (socket: Socket, peer: Peer | undefined): void => {
    if (socket.destroyed) return
    if (!peer) socket.destroy()
    else if (countClient(socket, peer)) for (const listener of serve) listener.call(server, socket)
    else refuse(socket, 'client')
  }
  const refuse = (socket: Socket, reason: 'total' | 'client' | 'proxy-header'): void => {
    telemetry.connectionRefused(reason)
    socket.destroy()
  }

  server.on('connection', (socket: Socket) => {
    if (open.size >= maxConnections) return refuse(socket, 'total')
    open.add(socket)
    accepted += 1
    telemetry.connectionOpened()
    socket.once('close', () => {
      open.delete(socket)
      telemetry.connectionClosed()
    })
    const peer = addresses.readPeer(socket.remoteAddress)
    if (!readNamedAddress || !peer?.trusted) return letIn(socket, peer)
    readNamedAddress(socket).then(
      (address) => {
        if (address !== undefined) rememberName(socket, address)
        letIn(socket, address === undefined ? peer : addresses.readPeer(address))
      },
      () => refuse(socket, 'proxy-header'),
    )
  })

  telemetry.observeTable('connections', () => ({ size: open.size, capacity: maxConnections, evictions: 0 }))
  return {
    addressOf: (socket) => (named.size > 0 && named.get(keyOf(socket))?.address) || socket.remoteAddress,
    get size() {
      return open.size
    },
    get accepted() {
      return accepted
    },
    closeUnused() {
      for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
    },
    closeAll() {
      for (const socket of open) socket.destroy()
    },
  }
}

function keyOf(socket: ConnectionAddresses): string {
  const { remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 } = socket
  return `${remotePort} ${localPort} ${remoteAddress} ${localAddress}`
}
