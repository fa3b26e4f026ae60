import { Socket } from 'node:net'

/** The socket below TLS. */
export function socketBeneath(secured: Socket): Socket | undefined {
  // Undocumented, but as old as TLS in Node, which uses it for timeouts itself.
  const { _parent: socket } = secured as { _parent?: unknown }
  return socket instanceof Socket ? socket : undefined
}
