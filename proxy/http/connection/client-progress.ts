import type { ClientRequest } from '../message/client-request.ts'
import type { ClientResponse } from '../message/client-response.ts'

/** An exchange that a slow client can delay. */
export type PacedExchange = {
  readonly request: ClientRequest
  readonly response: ClientResponse
  /** The progress of the forwarding; undefined until the request is forwarded, or its body is read for the decision. */
  readonly forwarding: ForwardProgress | undefined
  /** The response has been sent or the client has disconnected. */
  readonly isFinished: boolean
  /** The client: an IPv4 address or an IPv6 network. */
  readonly client: string
  /** Requests of other clients are on the same connection: it is an HTTP/2 connection of a trusted proxy. */
  readonly isOnSharedConnection: boolean
  /** The index of this exchange in the array of `SlowClients`; -1 if it is not there. */
  place: number
  /** Runs a step. An exception fails this exchange only. */
  guard(step: () => void): void
  /** Called when the client is too slow, while the exchange is not finished. */
  onTooSlow(): void
}

/** The part of forwarding that waits for the client. */
export type ForwardProgress = {
  /** Whether the exchange is waiting for the client to send more of the request body. */
  readonly waitsForBody: boolean
  /** The backend failed during its response: only the received part is left to write. */
  readonly isTruncated: boolean
  /** Increases when the client sends some of the request body or reads some of the response. */
  readonly clientProgress: number
  /** Buffered bytes of the backend's response, which have not been written to `response` yet. */
  readonly bufferedBytes: number
}

/** The next step expected of the client; undefined while waiting for something else, such as the backend. */
export function awaitedOf({
  isFinished,
  response,
  forwarding,
}: PacedExchange): 'body' | 'response' | undefined {
  // The request is finished, but the rest of a short body is still read and dropped, so that the connection can be
  // reused.
  if (isFinished) return 'body'
  if (response.writableEnded) return 'response'
  if (response.headersSent)
    return response.writableNeedDrain || forwarding?.isTruncated ? 'response' : undefined
  return forwarding?.waitsForBody ? 'body' : undefined
}

/**
 * A number that grows as the client progresses: bytes of the body, or pieces or bytes of the response that it read.
 *
 * @param isPressed unread responses take so much memory that single bytes are too little
 */
export function progressOf({ forwarding, response }: PacedExchange, isPressed: boolean): number {
  const progress = forwarding?.clientProgress ?? 0
  // Before its end, a response holds a connection to the backend, and single bytes are too little, too.
  return response.writableEnded && !isPressed ? progress + response.framedBytes : progress
}

/** Bytes of the response that the client has not read yet. */
export function unreadBytesOf({ forwarding, response }: PacedExchange): number {
  return (forwarding?.bufferedBytes ?? 0) + response.writableLength
}

/** Whether a persistent HTTP/1 connection still waits for the rest of the request body. */
export function isBodyAwaited({ request, response }: PacedExchange): boolean {
  const { httpVersionMajor, complete, socket } = request
  return httpVersionMajor === 1 && !complete && response.shouldKeepAlive && !socket.destroyed
}

/** Calls back once when the request body has been read or its connection has closed. */
export function onceBodyEnds({ request }: PacedExchange, callback: () => void): void {
  const { socket } = request
  const leave = (): void => {
    callback()
    socket.off('close', leave)
  }
  request.once('close', leave)
  socket.once('close', leave)
}
