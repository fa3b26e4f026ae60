import type { AddressReader, Peer } from '../../../proxy/request/addresses/client-address.ts'

/** The peer with this address, which must be readable. */
export function peerAt(reader: AddressReader, address: string): Peer {
  const peer = reader.readPeer(address)
  if (!peer) throw new TypeError(`'${address}' is not an address`)
  return peer
}
