import type { Http2ServerRequest, Http2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { AddressReader, Peer } from './client-address.ts'
import type { ConnectionAddresses } from '../http/messages.ts'
import type { ClientRequest } from '../http/messages.ts'

export type PeerOptions = {
  readonly addresses: AddressReader
  /** The address of who is at the other end of a connection; undefined where that is gone. */
  readonly addressOf: (socket: ConnectionAddresses) => string | undefined
}

const peers = new WeakMap<object, Peer>()

/**
 * Who is at the other end of a request's connection: looked at once for each connection.
 *
 * @returns undefined where the connection is gone and was never looked at
 */
export function peerOf(
  request: ClientRequest | Http2ServerRequest,
  { addresses, addressOf }: PeerOptions,
): Peer | undefined {
  const connection = connectionOf(request)
  const known = peers.get(connection)
  if (known) return known
  const peer = addresses.readPeer(addressOf(request.socket))
  if (peer) peers.set(connection, peer)
  return peer
}

/** What all requests of a connection share: with HTTP/2 the socket is another object for each of them, the session is not. */
export function connectionOf(request: ClientRequest | Http2ServerRequest): Socket | Http2Session {
  return ('stream' in request && request.stream.session) || request.socket
}
