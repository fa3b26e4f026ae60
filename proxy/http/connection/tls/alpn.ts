/** Protocols spoken over TLS, the preferred one first (RFC 7301; curl offers `http/1.0` with `--http1.0`). */
const protocols = ['h2', 'http/1.1', 'http/1.0']

/**
 * Chooses the protocol of a connection from the client's ALPN offer. A client that offers only unsupported protocols is refused; a client
 * without ALPN gets HTTP/1.1.
 */
export function chooseProtocol(offer: { readonly protocols: readonly string[] }): string | undefined {
  return protocols.find((protocol) => offer.protocols.includes(protocol))
}
