/** What is spoken over TLS, the best first (RFC 7301; `http/1.0` is what curl offers with `--http1.0`). */
const protocols = ['h2', 'http/1.1', 'http/1.0']

/**
 * Chooses the protocol of a connection from what its client offers by ALPN. A client that offers only unsupported ones
 * is refused; one without ALPN gets HTTP/1.1.
 */
export function chooseProtocol(offer: { readonly protocols: readonly string[] }): string | undefined {
  return protocols.find((protocol) => offer.protocols.includes(protocol))
}
