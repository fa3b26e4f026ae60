import { connect, isIP, type LookupFunction, type Socket, type TcpNetConnectOpts } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterInput } from '../../../shared/after-input.ts'
import { copyBytes } from '../message/detach-buffer.ts'
import { failureOfConnect, UpstreamFailure, type FailureKind } from './failure.ts'

/** The read buffer that each connection to a backend keeps. Most responses are shorter. */
const USUAL_READ_BYTES = 16 * 1024
/** The read buffer after a full read: as large as Node's own. */
const MAX_READ_BYTES = 64 * 1024

export type OpenerOptions = {
  /** PEM certificates of the authorities to trust in place of Node's. */
  readonly authorities?: Buffer | undefined
  /** The IP address to connect to. If undefined, the name in the URL is looked up. */
  readonly address?: string | undefined
  /** Looks the name up; default `dns.lookup`. */
  readonly lookup?: LookupFunction | undefined
  /** The protocols to offer with TLS (ALPN). */
  readonly protocols?: readonly string[] | undefined
}

/**
 * Creates a function that opens connections to the backend: TCP, or TLS with the backend's certificate verified against its name.
 *
 * @param url of the backend, `http:`, `https:` or `h2c:`
 * @returns a function that opens a connection; `ready` is called once it can be written to
 */
export function connectionOpener(
  url: URL,
  { authorities, address, lookup, protocols = ['http/1.1'] }: OpenerOptions = {},
): (ready: () => void) => Socket {
  const name = url.hostname.replace(/^\[|\]$/g, '')
  const host = address ?? name
  if (url.protocol !== 'https:') {
    const port = Number(url.port || 80)
    const options = {
      host,
      port,
      ...(lookup && { lookup }),
      noDelay: true,
      keepAlive: true,
      allowHalfOpen: true,
    }
    // An HTTP/2 session reads from the handle beneath the socket.
    if (url.protocol === 'h2c:') return (ready) => connect(options, ready)
    return (ready) => connectWithReadBuffer(options, ready)
  }
  const port = Number(url.port || 443)
  // SNI takes neither an address nor the final dot of an absolute name (RFC 6066 section 3). The certificate is checked nevertheless.
  const servername = isIP(name) ? '' : name.replace(/\.$/, '')
  let session: Buffer | undefined
  return (ready) => {
    const socket = connectTls(
      {
        host,
        port,
        ...(lookup && { lookup }),
        servername,
        session,
        ALPNProtocols: [...protocols],
        ...(authorities && { ca: authorities }),
      },
      ready,
    )
    socket.allowHalfOpen = true
    socket.on('session', (fresh) => (session = fresh))
    return socket
  }
}

/**
 * Connects with a reusable read buffer. By default, Node allocates 64 KiB for each read, and then gives back the unfilled rest, which costs
 * more than copying a short response.
 *
 * Bytes passed on are never overwritten: a piece of less than half of the buffer is copied; a larger piece keeps the buffer, and the next
 * read gets a new one.
 */
function connectWithReadBuffer(options: TcpNetConnectOpts, ready: () => void): Socket {
  let buffer = Buffer.allocUnsafeSlow(USUAL_READ_BYTES)
  const push = (bytes: number): boolean => {
    const { length } = buffer
    const isCopied = bytes < length / 2
    const filled = buffer.subarray(0, bytes)
    let piece: Buffer = filled
    if (isCopied) piece = socket[sharesMemory] ? Buffer.from(filled) : copyBytes(filled)
    // After a full buffer, there is usually more to read.
    const nextLength = bytes === length ? MAX_READ_BYTES : USUAL_READ_BYTES
    if (!isCopied || nextLength !== length) buffer = Buffer.allocUnsafeSlow(nextLength)
    if (!socket.readableFlowing || socket.readableLength > 0) return socket.push(piece)
    // Does what `push` does, except that `push` also makes the stream request more data, which does nothing here.
    try {
      socket.emit('data', piece)
    } catch (error) {
      // After an exception, Node does not request another buffer, and would overwrite the bytes passed on.
      socket.destroy()
      throw error
    }
    return true
  }
  const socket: ReadSocket = connect({ ...options, onread: { buffer: () => buffer, callback: push } }, ready)
  return socket
}

const sharesMemory = Symbol('sharesMemory')
type ReadSocket = Socket & { [sharesMemory]?: boolean }

/**
 * Sets whether the pieces that are read from a connection to the backend may share memory, which costs less. Each piece keeps all of that
 * memory alive, so this is only for a reader that copies the pieces that it keeps for long (`detachBuffer`).
 */
export function shareMemory(socket: Socket, isShared: boolean): void {
  ;(socket as ReadSocket)[sharesMemory] = isShared
}

/**
 * Opens a connection, and fails if that takes longer than `limitMs`. Calls either `onOpen` or `onFailure`, once, and never before it
 * returns.
 *
 * @param open opens a connection; calls back once it can be written to
 * @returns a function that aborts the attempt, and passes its failure to `onFailure`
 */
export function openWithin(
  limitMs: number,
  open: (ready: () => void) => Socket,
  onOpen: (socket: Socket) => void,
  onFailure: (failure: UpstreamFailure) => void,
): (failure: UpstreamFailure) => void {
  let isSettled = false
  const onError = (error: Error): void => giveUp(failureOfConnect(error))
  const onClose = (): void => fail('refused', 'the backend closed the connection while it was being opened')
  const socket = open(() => {
    settle()
    onOpen(socket)
  })
  const settle = (): void => {
    isSettled = true
    clearTimeout(timer)
    socket.off('error', onError)
    socket.off('close', onClose)
  }
  const giveUp = (failure: UpstreamFailure): void => {
    settle()
    socket.on('error', () => undefined)
    socket.destroy()
    onFailure(failure)
  }
  const fail = (kind: FailureKind, message: string): void => giveUp(new UpstreamFailure(kind, message))
  socket.on('error', onError)
  socket.on('close', onClose)
  const timer = setTimeout(() => {
    afterInput(() => {
      if (!isSettled) fail('connect-timeout', 'timed out connecting to the backend')
    })
  }, limitMs)
  return giveUp
}
