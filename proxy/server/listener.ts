import type { Server, Socket } from 'node:net'
import { TLSSocket, Server as TlsServer } from 'node:tls'
import { admitted } from '../http/connection/connection-limit.ts'
import {
  createHttp1Connections,
  type Http1Connections,
  type Http1Limits,
} from '../http/connection/http1/connections.ts'
import type { Http2Connections } from '../http/connection/http2/connections.ts'
import { createHttp1Handlers, type Http1Deps } from './http1-handlers.ts'
import { answerPlainHttp, isPlainHttp, plainHttp } from './plain-http.ts'

export type ListenerDeps = Omit<Http1Deps, 'onPreface'> & {
  readonly limits: Http1Limits
  /**
   * Serves HTTP/2 connections: with TLS, those that have negotiated HTTP/2; without TLS, those that begin with its preface. Undefined
   * without HTTP/2.
   */
  readonly http2: Http2Connections | undefined
  /** Monotonic milliseconds. */
  readonly now: () => number
}

/** Serves the connections that a server, with or without TLS, has admitted. */
export function serveClients(server: Server, deps: ListenerDeps): Http1Connections {
  const { http2, telemetry } = deps
  const isTls = server instanceof TlsServer
  const onPreface =
    http2 && !isTls ? (socket: Socket, bytes: Buffer) => http2.serve(socket, bytes) : undefined
  const http1 = createHttp1Connections(deps.limits, createHttp1Handlers({ ...deps, onPreface }), deps.now)
  server.on(isTls ? 'secureConnection' : admitted, (socket: Socket) => {
    if (http2 && socket instanceof TLSSocket && socket.alpnProtocol === 'h2') http2.serve(socket)
    else http1.serve(socket)
  })
  server.on('tlsClientError', (error: Error, socket: Socket) => {
    telemetry.connectionRefused('tls')
    if (!isPlainHttp(error)) return void socket.destroy()
    deps.onFault(plainHttp, socket.remoteAddress)
    if (!answerPlainHttp(socket)) socket.destroy()
  })
  return http1
}
