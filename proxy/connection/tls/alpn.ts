import type { Server, Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

/** What is spoken over TLS, the best first (RFC 7301; `http/1.0` is what curl offers with `--http1.0`). */
const protocols = ['h2', 'http/1.1', 'http/1.0']

/**
 * Chooses the protocol of a connection from what its client offers by ALPN. A client that offers only unsupported ones
 * is refused; one without ALPN gets HTTP/1.1.
 */
export function chooseProtocol(offer: { readonly protocols: readonly string[] }): string | undefined {
  return protocols.find((protocol) => offer.protocols.includes(protocol))
}

/** Node's server of HTTP/2 hands over to that of HTTP/1 only what was agreed on as `http/1.1`; both versions are served alike. */
export function serveHttp10(server: Server): void {
  server.prependListener('secureConnection', (socket: Socket) => {
    if (socket instanceof TLSSocket && socket.alpnProtocol === 'http/1.0') socket.alpnProtocol = 'http/1.1'
  })
}
