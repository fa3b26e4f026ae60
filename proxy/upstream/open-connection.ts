import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/**
 * How connections to the backend are opened: TCP, or TLS with the backend's certificate verified against its name.
 *
 * @param url of the backend, `http:` or `https:`
 * @param authorities PEM certificates of those to trust instead of the usual ones
 * @returns a function that opens one; `ready` is called once it can be written to
 */
export function connectionOpener(url: URL, authorities?: Buffer): (ready: () => void) => Socket {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (url.protocol === 'http:') {
    const port = Number(url.port || 80)
    return (ready) => connect({ host, port, noDelay: true, keepAlive: true, allowHalfOpen: true }, ready)
  }
  const port = Number(url.port || 443)
  // An address is no server name (RFC 6066 section 3); the certificate is checked against it all the same.
  const servername = isIP(host) ? '' : host
  let session: Buffer | undefined
  return (ready) => {
    const socket = connectTls(
      {
        host,
        port,
        servername,
        session,
        ALPNProtocols: ['http/1.1'],
        ...(authorities && { ca: authorities }),
      },
      ready,
    )
    socket.on('session', (fresh) => (session = fresh))
    return socket
  }
}
