import type { Socket } from 'node:net'

export type { ClientRequest } from './client-request.ts'
export type { ClientResponse } from './client-response.ts'

/** The identity of a connection, shared with the socket that TLS puts around it. */
export type ConnectionAddresses = Pick<Socket, 'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort'>
