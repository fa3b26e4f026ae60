import { Socket } from 'node:net'

/** The socket beneath a TLS socket. */
export function socketBeneath(secured: Socket): Socket | undefined {
  // `_parent` is undocumented, but as old as TLS in Node, which itself uses it for timeouts.
  const { _parent: socket } = secured as { _parent?: unknown }
  return socket instanceof Socket ? socket : undefined
}
