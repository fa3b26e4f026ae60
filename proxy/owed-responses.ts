import type { Socket } from 'node:net'
import type { ClientRequest, ClientResponse } from './reply.ts'

type Owed = { response: ClientResponse | undefined; requests: number }

const latest = new WeakMap<Socket, Owed>()

/** To be called for each request of HTTP/1 as it arrives: from now on its connection owes the response. */
export function oweResponse({ socket }: ClientRequest, response: ClientResponse): void {
  const owed = latest.get(socket)
  if (owed) {
    owed.response = response
    owed.requests++
  } else latest.set(socket, { response, requests: 1 })
}

/** To be called for a connection that becomes a tunnel: what was owed before has been given. */
export function leaveHttp(socket: Socket): void {
  latest.delete(socket)
}

/**
 * To be called when a response is over. Lets go of it and of all that hangs on it, as its connection may stay idle for
 * long: 7 KB each.
 */
export function settleResponse({ socket, complete }: ClientRequest, response: ClientResponse): void {
  const owed = latest.get(socket)
  if (complete && owed?.response === response) owed.response = undefined
}

/** The response to the latest request of a connection, if it may still be owed; it is `destroyed` once it is not. */
export function latestResponse(socket: Socket): ClientResponse | undefined {
  return latest.get(socket)?.response
}

/** How many requests a connection has brought so far, where it waits for the next one: all are read and answered. */
export function requestsBeforeNext(socket: Socket): number | undefined {
  const owed = latest.get(socket)
  if (!owed) return undefined
  const { response, requests } = owed
  return !response || (response.destroyed && response.req.complete) ? requests : undefined
}

/** Nothing is owed for what came before on a connection. */
export function owesNothing(socket: Socket): boolean {
  return latestResponse(socket)?.destroyed ?? true
}
