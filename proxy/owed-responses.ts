import type { Socket } from 'node:net'
import type { ClientRequest, ClientResponse } from './reply.ts'

type Owed = { response: ClientResponse | undefined }

const latest = new WeakMap<Socket, Owed>()

/** To be called for each request of HTTP/1 as it arrives: from now on its connection owes the response. */
export function oweResponse({ socket }: ClientRequest, response: ClientResponse): void {
  const owed = latest.get(socket)
  if (owed) owed.response = response
  else latest.set(socket, { response })
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

/** Nothing is owed for what came before on a connection. */
export function owesNothing(socket: Socket): boolean {
  return latestResponse(socket)?.destroyed ?? true
}
