import type { Socket } from 'node:net'
import type { ClientRequest, ClientResponse } from '../http/messages.ts'

type Owed = {
  response: ClientResponse | undefined
  requests: number
  /** When the response before was over, in monotonic milliseconds. */
  settledMs: number
  /** It has become a tunnel, or is about to. */
  readonly tunnel: boolean
}

const latest = new WeakMap<Socket, Owed>()

/** To be called for each request of HTTP/1 as it arrives: from now on its connection owes the response. */
export function oweResponse({ socket }: ClientRequest, response: ClientResponse): void {
  const owed = latest.get(socket)
  if (owed) {
    owed.response = response
    owed.requests++
  } else latest.set(socket, { response, requests: 1, settledMs: 0, tunnel: false })
}

/** To be called for a connection that becomes a tunnel, once all earlier requests on it have been answered. */
export function leaveHttp(socket: Socket): void {
  latest.set(socket, { response: undefined, requests: 0, settledMs: 0, tunnel: true })
}

/**
 * To be called when a response is over. Drops the references to it and to its request, 7 KB, as the connection may stay
 * idle for long.
 */
export function settleResponse(
  { socket, complete }: ClientRequest,
  response: ClientResponse,
  nowMs: number,
): void {
  const owed = latest.get(socket)
  if (owed?.response !== response) return
  owed.settledMs = nowMs
  if (complete) owed.response = undefined
}

/** The response to the latest request of a connection, if it may still be owed; it is `destroyed` once it is not. */
export function latestResponse(socket: Socket): ClientResponse | undefined {
  return latest.get(socket)?.response
}

/** How many requests a connection has brought so far, where it waits for the next one: all are read and answered. */
export function requestsBeforeNext(socket: Socket): number | undefined {
  const owed = latest.get(socket)
  if (!owed || owed.tunnel) return undefined
  const { response, requests } = owed
  return !response || (response.destroyed && response.req.complete) ? requests : undefined
}

/**
 * Since when a connection waits for a whole request: since the one before was answered, or since it was opened. Undefined
 * where a request is in flight, and for a tunnel.
 */
export function waitsSince(socket: Socket, openedMs: number): number | undefined {
  const owed = latest.get(socket)
  if (!owed) return openedMs
  return requestsBeforeNext(socket) === undefined ? undefined : owed.settledMs
}

/** All earlier requests of a connection have been answered. */
export function owesNothing(socket: Socket): boolean {
  return latestResponse(socket)?.destroyed ?? true
}

/**
 * All earlier requests of a connection have been answered, though the last bytes may not have left yet: what is written
 * next follows them.
 */
export function hasAnsweredAll(socket: Socket): boolean {
  const response = latestResponse(socket)
  if (!response || response.destroyed) return true
  return response.writableEnded && response.req.complete && response === currentResponse(socket)
}

/** The response that goes out on a connection of HTTP/1 now; those to later requests wait for it. */
export function currentResponse(socket: Socket): ClientResponse | undefined {
  // Not documented, but as old as Node's server, which finds the response there itself.
  return (socket as { _httpMessage?: ClientResponse | null })._httpMessage ?? undefined
}

/**
 * To be called for a socket that Node hands over with `upgrade` or `connect`. It has taken its own listener of `drain` off
 * before, and without one a response that has waited for its client once waits for ever.
 */
export function keepDraining(socket: Socket): void {
  socket.on('drain', () => {
    const response = currentResponse(socket)
    if (!response || response.writableEnded) return
    // What Node would answer it only changes in its own listener.
    Object.defineProperty(response, 'writableNeedDrain', {
      get: () => socket.writableNeedDrain,
      configurable: true,
    })
    response.emit('drain')
  })
}
