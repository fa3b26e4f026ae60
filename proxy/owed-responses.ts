import type { Socket } from 'node:net'
import type { ClientRequest, ClientResponse } from './reply.ts'

const latest = new WeakMap<Socket, ClientResponse>()

/** To be called for each request of HTTP/1 as it arrives: from now on its connection owes the response. */
export function oweResponse({ socket }: ClientRequest, response: ClientResponse): void {
  latest.set(socket, response)
}

/** The response to the latest request of a connection; it is `destroyed` once it is no longer owed. */
export function latestResponse(socket: Socket): ClientResponse | undefined {
  return latest.get(socket)
}

/** Nothing is owed for what came before on a connection. */
export function owesNothing(socket: Socket): boolean {
  return latest.get(socket)?.destroyed ?? true
}
