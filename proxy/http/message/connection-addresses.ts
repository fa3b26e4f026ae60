import type { Socket } from 'node:net'

/** The identity of a connection, shared with the socket that TLS puts around it. */
export type ConnectionAddresses = Pick<Socket, 'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort'>
