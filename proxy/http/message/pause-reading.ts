import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'

// Node has no option for how much a stream reads while it is paused (a server's `highWaterMark` also applies to writing), and no method to
// stop reading from a connection. So this file changes the internal states of streams for that. No other file does.

type Internals = {
  readonly _handle?: { reading: boolean; readStop(): unknown } | null
  readonly _readableState: { reading: boolean; highWaterMark: number }
}

/** Makes a stream request no more data once it is paused. By default, Node reads on until the buffer holds 64 KiB. */
export function askForNothing(stream: Readable): void {
  ;(stream as unknown as Internals)._readableState.highWaterMark = 0
}

/**
 * Pauses a socket, and stops reading from the connection at once. `resume` continues both. With `pause` alone, one or two further reads of
 * 64 KiB are buffered in the socket.
 */
export function pauseReading(socket: Socket): void {
  socket.pause()
  askForNothing(socket)
  const { _handle: handle, _readableState: state } = socket as unknown as Internals
  if (!handle?.reading) return
  handle.reading = false
  handle.readStop()
  // Otherwise `resume` would wait for the read that has been stopped.
  state.reading = false
}
