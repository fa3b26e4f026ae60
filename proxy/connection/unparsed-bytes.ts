import type { Socket } from 'node:net'

/** Node pauses the parser of a connection whose client does not take its answers, and notes it here. */
type PausedByNode = { readonly _paused?: boolean }

const kept = new WeakMap<Socket, Buffer[]>()

/**
 * Keeps bytes that a connection's parser was given while it was paused, and gives them to it as soon as it goes on. Node
 * stops reading when it pauses the parser, but TLS has decrypted several records by then and still delivers them: the parser
 * then fails with `HPE_PAUSED`, although nothing is wrong with the request.
 *
 * There is one read of the system at most, 64 KiB, as no more is read until the parser goes on.
 */
export function keepUnparsed(socket: Socket, bytes: Buffer): void {
  const pieces = kept.get(socket)
  if (pieces) pieces.push(bytes)
  else {
    kept.set(socket, [bytes])
    // Emitted before anything more is read, so that the bytes stay in order.
    socket.on('resume', parseKept)
  }
}

/** Goes on until the parser is paused again. */
function parseKept(this: Socket): void {
  const pieces = kept.get(this) ?? []
  while (!(this as PausedByNode)._paused && !this.destroyed) {
    const bytes = pieces.shift()
    if (!bytes) {
      kept.delete(this)
      this.off('resume', parseKept)
      return
    }
    // Node's listener gives it to the parser.
    this.emit('data', bytes)
  }
}
