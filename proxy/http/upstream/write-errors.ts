import type { Socket } from 'node:net'

// When a write fails, Node destroys a socket, and with it the received bytes that have not been read. Sockets have no option against this:
// their constructor sets `autoDestroy`. So this file changes the internal states of streams for write errors. No other file does.

type States = Record<
  '_readableState' | '_writableState',
  { autoDestroy: boolean; errored: Error | null | undefined; errorEmitted: boolean }
>

/** Makes a socket emit `error` when a write fails, and stay open. Any other error ends it as before. */
export function surviveWriteErrors(socket: Socket): void {
  setAutoDestroy(socket, false)
}

/** Call for such a socket when it becomes a tunnel, because the tunnel waits for its `close`. */
export function endOnWriteErrors(socket: Socket): void {
  setAutoDestroy(socket, true)
}

function setAutoDestroy(socket: Socket, value: boolean): void {
  const { _readableState, _writableState } = statesOf(socket)
  _readableState.autoDestroy = value
  _writableState.autoDestroy = value
}

/** Call when such a socket has emitted `error` and is not destroyed: the received bytes can be read. */
export function readOnAfterError(socket: Socket): void {
  const { _readableState } = statesOf(socket)
  _readableState.errored = null
  // Otherwise the data buffered in the stream would be taken out of it and lost.
  _readableState.errorEmitted = false
}

function statesOf(socket: Socket): States {
  return socket as unknown as States
}
