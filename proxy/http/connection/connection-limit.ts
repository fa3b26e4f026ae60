import type { Server, Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import type { Log } from '../../../shared/log.ts'
import type { ConnectionAddresses } from '../message/client-request.ts'
import { resetSocket } from '../message/reset-socket.ts'
import { paceLines } from '../../telemetry/paced-lines.ts'
import type { EvictedConnection, Telemetry } from '../../telemetry/telemetry.ts'
import { ClientCounts } from './client-counts.ts'
import { idleSince, type Connection } from './connection.ts'
import { createEviction } from './eviction.ts'
import { http2ConnectionOn } from './http2/connections.ts'
import { NamedAddresses } from './named-addresses.ts'
import { socketBeneath } from './tls/socket-beneath.ts'

/** The peer of a connection. */
type Peer = {
  /** A trusted proxy, which connects for many clients. */
  readonly trusted: boolean
  /** `prefix` is the key of the client's connections: an IPv4 address or an IPv6 network. */
  readonly client: { readonly prefix: string }
}

export type ConnectionLimitOptions = {
  /** Concurrent connections of all clients. */
  readonly maxConnections: number
  /** Concurrent connections of one client, an IPv4 address or an IPv6 network; 0 means no limit. */
  readonly maxConnectionsPerClient: number
  /** The peer at an address; undefined if there is no address. */
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

/** The event with which a server without TLS reports a connection that it may serve. */
export const admitted = 'admitted'

/** The minimum time between two log lines saying that `maxConnections` is reached. */
const FULL_LINE_MS = 60_000

/**
 * Passes connections on to a server's own listeners within limits. A connection over its client's limit is closed without a response,
 * because sending one takes time. At `maxConnections`, other connections are evicted to make room, as far as that is fair. Connections of
 * trusted proxies serve many clients and count towards the total only.
 */
export class ConnectionLimit {
  readonly #server: Server
  readonly #options: ConnectionLimitOptions
  /** The server's own listeners. */
  readonly #listeners: ReturnType<Server['listeners']>
  readonly #open = new Set<Connection>()
  readonly #counts = new ClientCounts()
  readonly #named = new NamedAddresses()
  /** With TLS, the connection of each accepted socket, which the TLS socket wraps. */
  readonly #beneath = new WeakMap<Socket, Connection>()
  readonly #makeRoom: (newcomersConnections: number) => boolean
  readonly #logFull: () => void
  #accepted = 0
  #evictions = 0

  constructor(server: Server, options: ConnectionLimitOptions) {
    const { maxConnections: capacity, telemetry, now } = options
    this.#server = server
    this.#options = options
    this.#makeRoom = createEviction({
      open: this.#open,
      capacity,
      clientOf: ({ client }: Connection) => client,
      idleSince,
      openedAt: ({ openedMs }) => openedMs,
      close: (connection, state) => this.#evict(connection, state),
      now,
    })
    this.#logFull = createLimitReachedLog(options, this.#counts)
    this.#listeners = server.listeners('connection')
    server.removeAllListeners('connection')
    server.on('connection', (socket: Socket) => this.#accept(socket))
    server.prependListener('secureConnection', (secured: Socket) => this.#trackTlsSocket(secured))
    telemetry.observeTable('connections', () => ({ size: this.size, capacity, evictions: this.#evictions }))
  }

  /** The open connections. */
  get connections(): Iterable<Connection> {
    return this.#open
  }

  get size(): number {
    return this.#open.size
  }

  /** How many connections have been admitted so far. */
  get accepted(): number {
    return this.#accepted
  }

  /** The client's address: the one that a trusted proxy sent in a PROXY header, otherwise the peer's. */
  addressOf(socket: ConnectionAddresses): string | undefined {
    return this.#named.of(socket) ?? socket.remoteAddress
  }

  /**
   * Whether a trusted proxy sent a PROXY header without an address (`UNKNOWN`, `LOCAL`). Its requests are its own, such as health checks,
   * or those of a client that it cannot name. The proxy has not read the requests, so it vouches for none of their headers.
   */
  isWithoutClient(socket: ConnectionAddresses): boolean {
    return this.#named.isWithoutClient(socket)
  }

  /** Closes connections on which nothing has been received yet. */
  closeUnused(): void {
    for (const { socket, headerBytes } of this.#open) if (socket.bytesRead === headerBytes) socket.destroy()
  }

  /** Closes all connections at once. */
  closeAll(): void {
    for (const { socket } of this.#open) socket.destroy()
  }

  #accept(socket: Socket): void {
    const { maxConnections, readPeer, readNamedAddress } = this.#options
    const peer = readPeer(socket.remoteAddress)
    if (!peer) return void socket.destroy()
    const client = clientOf(peer)
    if (this.#isOverLimit(client)) return this.#refuse(socket, 'client')
    if (this.size >= maxConnections) {
      this.#logFull()
      if (!this.#makeRoom(this.#counts.of(client))) return this.#refuse(socket, 'total')
    }
    const connection = this.#add(socket, client)
    if (!readNamedAddress || !peer.trusted) return this.#serve(socket)
    readNamedAddress(socket).then(
      (address) => {
        this.#named.add(socket, address)
        // Bytes that came with the header wait to be read.
        connection.headerBytes = socket.bytesRead - socket.readableLength
        this.#serveNamed(connection, address === undefined ? peer : readPeer(address))
      },
      () => this.#refuse(socket, 'proxy-header'),
    )
  }

  #isOverLimit(client: string | undefined): boolean {
    const { maxConnectionsPerClient } = this.#options
    return maxConnectionsPerClient > 0 && this.#counts.of(client) >= maxConnectionsPerClient
  }

  #refuse(socket: Socket, reason: 'total' | 'client' | 'proxy-header'): void {
    this.#options.telemetry.connectionRefused(reason)
    socket.destroy()
  }

  #add(socket: Socket, client: string | undefined): Connection {
    const { telemetry, now } = this.#options
    const connection: Connection = { socket, secured: undefined, openedMs: now(), headerBytes: 0, client }
    this.#open.add(connection)
    this.#counts.add(client)
    this.#accepted += 1
    telemetry.connectionOpened()
    socket.once('close', () => this.#remove(connection))
    if (this.#server instanceof TlsServer) this.#beneath.set(socket, connection)
    return connection
  }

  #remove(connection: Connection): void {
    if (!this.#open.delete(connection)) return
    this.#options.telemetry.connectionClosed()
    this.#counts.remove(connection.client)
  }

  /** Serves a connection once its PROXY header has been read and its client is known. */
  #serveNamed(connection: Connection, peer: Peer | undefined): void {
    const { socket } = connection
    if (socket.destroyed) return
    if (!peer) return void socket.destroy()
    const client = clientOf(peer)
    if (this.#isOverLimit(client)) return this.#refuse(socket, 'client')
    connection.client = client
    this.#counts.add(client)
    this.#serve(socket)
  }

  #serve(socket: Socket): void {
    // A client that half-closes the connection before the handshake is done has left.
    if (this.#server instanceof TlsServer) socket.allowHalfOpen = false
    for (const listener of this.#listeners) listener.call(this.#server, socket)
    this.#server.emit(admitted, socket)
  }

  #trackTlsSocket(secured: Socket): void {
    const socket = socketBeneath(secured)
    const connection = socket && this.#beneath.get(socket)
    if (connection) connection.secured = secured
    // From now on, a client that half-closes the connection may still have to receive a response.
    secured.allowHalfOpen = true
    if (socket) socket.allowHalfOpen = true
  }

  #evict(connection: Connection, state: EvictedConnection): void {
    // Frees its place now, not only when the operating system has closed the socket.
    this.#remove(connection)
    this.#evictions++
    this.#options.telemetry.connectionEvicted(state)
    const { socket, secured } = connection
    const http2 = http2ConnectionOn(secured ?? socket)
    if (http2) {
      const served = secured ?? socket
      const isUnread = served.writableLength > 0
      // With a GOAWAY, so that the client knows which requests may have been processed (RFC 9113 section 6.8).
      http2.closeNow()
      // Without waiting for the client, because the file of the socket counts for nobody from now on. A client that has not read the output
      // before does not read the GOAWAY either.
      if (isUnread) socket.destroy()
      else served.destroySoon()
    }
    // An aborted response must not look complete.
    else if (state === 'busy' && !secured) resetSocket(socket)
    else socket.destroy()
  }
}

/** The client that a connection counts for: undefined for a trusted proxy, which serves many. */
function clientOf({ trusted, client }: Peer): string | undefined {
  return trusted ? undefined : client.prefix
}

/** Logs from time to time that `maxConnections` is reached, and which client has the most connections. */
function createLimitReachedLog(
  { log, logAddresses, maxConnections }: ConnectionLimitOptions,
  counts: ClientCounts,
): () => void {
  const logPaced = paceLines<undefined>(FULL_LINE_MS, (newConnections) => {
    const [client, mostOfOneClient] = counts.largest() ?? []
    log.warn(
      {
        maxConnections,
        newConnections,
        clients: counts.size,
        mostOfOneClient,
        client: logAddresses ? client : undefined,
      },
      'MAX_CONNECTIONS reached: closing idle connections to make room for new ones',
    )
  })
  return () => logPaced(undefined)
}
