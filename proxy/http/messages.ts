import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** A request as the steps see it, and the response to it. HTTP/2 ones have the same shape through Node's own adapter. */
export type ClientRequest = IncomingMessage
export type ClientResponse = ServerResponse

/** What tells a connection from all others, also on the socket that TLS puts around it. */
export type ConnectionAddresses = Pick<Socket, 'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort'>
