import { Socket, type Server } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import type { Log } from '../../../shared/log.ts'
import type { ConnectionAddresses } from '../message/messages.ts'
import { paceLines } from '../../telemetry/paced-lines.ts'
import type { EvictedConnection, Telemetry } from '../../telemetry/telemetry.ts'
import { idleSince, type Connection } from './connection.ts'
import { createEviction } from './eviction.ts'
import { http2ConnectionOn } from './http2/connections.ts'

/** The peer of a connection. */
type Peer = {
  /** A trusted proxy, which connects for many clients. */
  readonly trusted: boolean
  /** `prefix` is the key of the client's connections: an IPv4 address or an IPv6 network. */
  readonly client: { readonly prefix: string }
}

export type ConnectionLimitOptions = {
  /** Connections at a time. */
  readonly maxConnections: number
  /** Concurrent connections of one client, an IPv4 address or an IPv6 network; 0 means no limit. */
  readonly maxConnectionsPerClient: number
  /** Reads who connects from an address; undefined if there is no address. */
  readonly readPeer: (address: string | undefined) => Peer | undefined
  /**
   * Reads the PROXY header, if trusted proxies send one. Resolves with the client's address, or with undefined if the
   * proxy connects on its own behalf; rejects if the header is missing or malformed.
   */
  readonly readNamedAddress: ((socket: Socket) => Promise<string | undefined>) | undefined
  readonly telemetry: Telemetry
  readonly log: Log
  /** Whether addresses of clients may be in log lines. */
  readonly logAddresses: boolean
  /** Monotonic milliseconds. */
  readonly now: () => number
}

/** Limits the connections that a server accepts. */
export type ConnectionLimit = {
  /** The client's address: the one that a trusted proxy sent in a PROXY header, otherwise the peer's. */
  addressOf(socket: ConnectionAddresses): string | undefined
  /** Those that are open. */
  readonly connections: Iterable<Connection>
  readonly size: number
  /** How many connections have been admitted so far. */
  readonly accepted: number
  /** Closes connections on which nothing has been received yet. */
  closeUnused(): void
  /** Closes all connections at once. */
  closeAll(): void
}

type Named = { readonly socket: Socket; readonly address: string }

/** The event with which a server without TLS reports a connection that it may serve. */
export const admitted = 'admitted'

/** At most one line in this time says that `maxConnections` is reached. */
const fullLineMs = 60_000

/**
 * Passes connections on to a server's own listeners within limits. A connection over its client's limit is closed
 * without a response, as sending one takes time. At `maxConnections`, others are evicted to make room, as far as that
 * is fair. Connections of trusted proxies serve many clients and count towards the total only.
 */
export function limitConnections(server: Server, options: ConnectionLimitOptions): ConnectionLimit {
  const { maxConnections, maxConnectionsPerClient, readPeer, readNamedAddress, telemetry, now } = options
  const open = new Set<Connection>()
  const perClient = new Map<string, number>()
  let accepted = 0
  let evictions = 0
  // By the connection's own addresses, which with TLS are all that the socket of a request shares with this one. Both
  // ends: a load balancer may use one port of its own for connections to two addresses of ours.
  const named = new Map<string, Named>()
  const serve = server.listeners('connection')
  server.removeAllListeners('connection')
  const makeRoom = createEviction({
    open,
    capacity: maxConnections,
    clientOf: ({ client }: Connection) => client,
    idleSince,
    openedAt: ({ openedMs }) => openedMs,
    close: (connection, state) => evict(connection, state),
    now,
  })
  const isTls = server instanceof TlsServer
  const connections = new WeakMap<Socket, Connection>()
  const tellFull = createLimitReachedLog(options, perClient)

  const countOf = (client: string | undefined): number =>
    client === undefined ? 0 : (perClient.get(client) ?? 0)
  const isOverLimit = (client: string | undefined): boolean =>
    maxConnectionsPerClient > 0 && countOf(client) >= maxConnectionsPerClient
  const setClient = (connection: Connection, client: string | undefined): void => {
    if (client === undefined) return
    connection.client = client
    perClient.set(client, countOf(client) + 1)
  }
  const leave = (connection: Connection): void => {
    if (!open.delete(connection)) return
    telemetry.connectionClosed()
    const { client } = connection
    if (client === undefined) return
    const left = countOf(client) - 1
    if (left === 0) perClient.delete(client)
    else perClient.set(client, left)
  }
  const evict = (connection: Connection, state: EvictedConnection): void => {
    // Its place is free at once, not only when the system has closed the socket.
    leave(connection)
    evictions++
    telemetry.connectionEvicted(state)
    const { socket, secured } = connection
    const http2 = http2ConnectionOn(secured ?? socket)
    // With a GOAWAY, so that the client knows that nothing is in flight (RFC 9113 section 6.8).
    if (http2) http2.leave()
    // An aborted response must not look complete.
    else if (state === 'busy' && !secured) socket.resetAndDestroy()
    else socket.destroy()
  }
  const rememberName = (socket: Socket, address: string): void => {
    const key = keyOf(socket)
    named.set(key, { socket, address })
    socket.once('close', () => {
      if (named.get(key)?.socket === socket) named.delete(key)
    })
  }
  const serveOn = (socket: Socket): void => {
    for (const listener of serve) listener.call(server, socket)
    server.emit(admitted, socket)
  }
  /** The client that a connection counts for: undefined for a trusted proxy, which serves many. */
  const clientOf = ({ trusted, client }: Peer): string | undefined => (trusted ? undefined : client.prefix)
  const letInNamed = (connection: Connection, peer: Peer | undefined): void => {
    const { socket } = connection
    if (socket.destroyed) return
    if (!peer) return void socket.destroy()
    const client = clientOf(peer)
    if (isOverLimit(client)) return refuse(socket, 'client')
    setClient(connection, client)
    serveOn(socket)
  }
  const refuse = (socket: Socket, reason: 'total' | 'client' | 'proxy-header'): void => {
    telemetry.connectionRefused(reason)
    socket.destroy()
  }

  server.on('connection', (socket: Socket) => {
    const peer = readPeer(socket.remoteAddress)
    if (!peer) return void socket.destroy()
    const client = clientOf(peer)
    if (isOverLimit(client)) return refuse(socket, 'client')
    if (open.size >= maxConnections) {
      tellFull()
      if (!makeRoom(countOf(client))) return refuse(socket, 'total')
    }
    const connection: Connection = { socket, secured: undefined, openedMs: now(), client: undefined }
    open.add(connection)
    setClient(connection, client)
    accepted += 1
    telemetry.connectionOpened()
    socket.once('close', () => leave(connection))
    if (isTls) connections.set(socket, connection)
    if (!readNamedAddress || !peer.trusted) return serveOn(socket)
    readNamedAddress(socket).then(
      (address) => {
        if (address !== undefined) rememberName(socket, address)
        letInNamed(connection, address === undefined ? peer : readPeer(address))
      },
      () => refuse(socket, 'proxy-header'),
    )
  })
  server.prependListener('secureConnection', (secured: Socket) => {
    const socket = socketBeneath(secured)
    const connection = socket && connections.get(socket)
    if (connection) connection.secured = secured
  })

  telemetry.observeTable('connections', () => ({ size: open.size, capacity: maxConnections, evictions }))
  return {
    addressOf: (socket) => (named.size > 0 && named.get(keyOf(socket))?.address) || socket.remoteAddress,
    connections: open,
    get size() {
      return open.size
    },
    get accepted() {
      return accepted
    },
    closeUnused() {
      for (const { socket } of open) if (socket.bytesRead === 0) socket.destroy()
    },
    closeAll() {
      for (const { socket } of open) socket.destroy()
    },
  }
}

/** Logs from time to time that `maxConnections` is reached, and which client has the most connections. */
function createLimitReachedLog(
  { log, logAddresses, maxConnections }: ConnectionLimitOptions,
  perClient: ReadonlyMap<string, number>,
): () => void {
  const tell = paceLines<undefined>(fullLineMs, (newConnections) => {
    let most: [string, number] | undefined
    for (const entry of perClient) if (!most || entry[1] > most[1]) most = entry
    const [client, mostOfOneClient] = most ?? []
    log.warn(
      {
        maxConnections,
        newConnections,
        clients: perClient.size,
        mostOfOneClient,
        client: logAddresses ? client : undefined,
      },
      'MAX_CONNECTIONS reached: closing idle connections to make room for new ones',
    )
  })
  return () => tell(undefined)
}

/** The socket below TLS. */
function socketBeneath(secured: Socket): Socket | undefined {
  // Not documented, but as old as TLS in Node, which itself keeps timeouts by it.
  const { _parent: socket } = secured as { _parent?: unknown }
  return socket instanceof Socket ? socket : undefined
}

function keyOf(socket: ConnectionAddresses): string {
  const { remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 } = socket
  return `${remotePort} ${localPort} ${remoteAddress} ${localAddress}`
}
