import type { Socket } from 'node:net'
import type { ConnectionAddresses } from '../http/message/messages.ts'
import type { ClientRequest } from '../http/message/messages.ts'
import type { AddressReader, Peer } from './addresses/client-address.ts'

export type PeerOptions = {
  readonly addresses: AddressReader
  /** The address of the peer of a connection; undefined if it has disconnected. */
  readonly addressOf: (socket: ConnectionAddresses) => string | undefined
}

const peers = new WeakMap<object, Peer>()

/**
 * The peer of a request's connection, read once per connection.
 *
 * @returns undefined if the connection has closed and its peer was never read
 */
export function peerOf(request: ClientRequest, { addresses, addressOf }: PeerOptions): Peer | undefined {
  const connection = connectionOf(request)
  const known = peers.get(connection)
  if (known) return known
  const peer = addresses.readPeer(addressOf(request.socket))
  if (peer) peers.set(connection, peer)
  return peer
}

/** What all requests of a connection share. */
export function connectionOf(request: ClientRequest): Socket {
  return request.socket
}
