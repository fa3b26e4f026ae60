import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { createEviction } from '../http/connection/eviction.ts'
import { createAddressReader } from '../request/addresses/client-address.ts'

/** A connection to the admin listener. */
type Visit = {
  readonly socket: Socket
  readonly address: string | undefined
  readonly openedMs: number
  /** Number of requests that have not been answered. */
  unanswered: number
  /** Whether a request on the connection has sent the token. */
  operator: boolean
  /** Number of requests with the token in flight. */
  serving: number
  idleSinceMs: number
}

/** Longer than the usual interval between two scrapes, so that Prometheus keeps its connection. */
const OPERATOR_KEEP_ALIVE_MS = 75_000

/**
 * Maximum number of requests of a connection that have not been answered. The usual clients wait for each response. Node reads on without a
 * limit, and a client could fill memory with requests, and keep this process from doing anything else.
 */
const MAX_UNANSWERED = 16

const visits = new WeakMap<Socket, Visit>()
const addresses = createAddressReader([])
const now = (): number => performance.now()

/**
 * Limits the connections to the admin listener so that clients without the token cannot block it. At the limit, each new connection
 * replaces one that has no operator's request in flight, even while a head or body is arriving on it. Otherwise anybody who can reach the
 * port could make the orchestrator restart the gateway, because `/livez` would not be answered.
 */
export function limitConnections(server: Server, capacity: number): void {
  const open = new Set<Visit>()
  const makeRoom = createEviction<Visit>({
    open,
    capacity,
    // Operators' connections are closed last, because each counts as the only one of its client.
    clientOf: ({ operator, address }) => (operator ? undefined : address),
    idleSince: ({ serving, idleSinceMs }) => (serving > 0 ? undefined : idleSinceMs),
    openedAt: ({ openedMs }) => openedMs,
    close: (visit) => {
      open.delete(visit)
      visit.socket.destroy()
    },
    now,
  })
  server.on('connection', (socket: Socket) => {
    if (open.size >= capacity && !makeRoom(0)) {
      socket.destroy()
      return
    }
    const openedMs = now()
    const address = addresses.readPeer(socket.remoteAddress)?.client.prefix
    const since = { openedMs, idleSinceMs: openedMs }
    const visit = { socket, address, ...since, unanswered: 0, operator: false, serving: 0 }
    open.add(visit)
    visits.set(socket, visit)
    socket.once('close', () => open.delete(visit))
  })
}

/**
 * Call this for each request. Closes the connection if it has too many unanswered requests.
 *
 * @returns whether to answer the request
 */
export function mayAnswer({ socket }: IncomingMessage, response: ServerResponse): boolean {
  const visit = visits.get(socket)
  if (visit && visit.unanswered >= MAX_UNANSWERED) socket.destroy()
  // The parser still emits the requests that arrived together with this one.
  if (socket.destroyed) return false
  if (visit) {
    visit.unanswered++
    response.once('close', () => visit.unanswered--)
  }
  return true
}

/**
 * Call this for each request of an operator, who may keep an idle connection for longer than other clients.
 *
 * @param proven whether the client has presented the token. Without a token, every process on this machine counts as an operator, and must
 *   not hold connections either
 */
export function serveOperator(
  { socket }: IncomingMessage,
  response: ServerResponse,
  { proven }: { readonly proven: boolean },
): void {
  const visit = visits.get(socket)
  if (!visit) return
  if (proven) {
    visit.operator = true
    visit.serving++
  }
  response.setHeader('Keep-Alive', `timeout=${OPERATOR_KEEP_ALIVE_MS / 1000}`)
  response.once('close', () => {
    if (proven) visit.serving--
    visit.idleSinceMs = now()
    // Node has just set the timeout for all other clients.
    socket.setTimeout(OPERATOR_KEEP_ALIVE_MS)
  })
}
