import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ClientRequest } from './reply.ts'
import type { ResponseHead } from './upstream/response-head.ts'

/** The tunnels that are open, and how to end them all. */
export type Tunnels = {
  /**
   * Passes bytes both ways between a client and the backend until one side ends or nothing has passed for the idle
   * time. Each side's end is passed on to the other after what it sent before.
   *
   * @param clientRest what the client sent after its handshake, already read
   * @param upstreamRest likewise of the backend
   */
  open(client: Duplex, clientRest: Buffer, head: ResponseHead, upstream: Socket, upstreamRest: Buffer): void
  readonly size: number
  /** Ends every tunnel, giving what is on its way a moment to arrive. */
  closeAll(): void
}

export type TunnelOptions = {
  readonly idleMs: number
  readonly onOpen: () => void
  readonly onClose: () => void
}

/** How long one side may take to close after the other has. */
const closingMs = 2_000

// RFC 6455 section 4.1: 16 bytes in base64.
const webSocketKey = /^[A-Za-z0-9+/]{22}==$/

/** The request offers to become a WebSocket, well-formed or not. */
export function offersWebSocket({ headers }: ClientRequest): boolean {
  return (
    headers.upgrade?.toLowerCase() === 'websocket' &&
    /(?:^|,)\s*upgrade\s*(?:,|$)/i.test(headers.connection ?? '')
  )
}

/**
 * A WebSocket handshake as RFC 6455 section 4.1 has it, with no body: what is not that must not become a tunnel, through
 * which a client could reach the backend unseen.
 */
export function isWebSocketHandshake({ method, headers, httpVersion }: ClientRequest): boolean {
  return (
    method === 'GET' &&
    httpVersion === '1.1' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['sec-websocket-version'] === '13' &&
    webSocketKey.test(headers['sec-websocket-key'] ?? '') &&
    headers['transfer-encoding'] === undefined &&
    Number(headers['content-length'] ?? 0) === 0
  )
}

export function createTunnels({ idleMs, onOpen, onClose }: TunnelOptions): Tunnels {
  const open = new Set<() => void>()
  return {
    get size() {
      return open.size
    },
    closeAll() {
      for (const close of open) close()
    },
    open(client, clientRest, head, upstream, upstreamRest) {
      let timer: NodeJS.Timeout | undefined
      const closeSoon = (): void => {
        client.end()
        upstream.end()
        timer ??= setTimeout(() => {
          client.destroy()
          upstream.destroy()
        }, closingMs)
      }
      const closed = (): void => {
        closeSoon()
        if (!client.destroyed || !upstream.destroyed) return
        clearTimeout(timer)
        if (open.delete(closeSoon)) onClose()
      }
      for (const side of [client, upstream]) {
        // Each error is followed by `close`, where it is dealt with.
        side.on('error', () => undefined)
        side.on('close', closed)
      }
      upstream.setTimeout(idleMs, closeSoon)
      open.add(closeSoon)
      onOpen()

      client.write(upgradeHead(head), 'latin1')
      if (upstreamRest.length > 0) client.write(upstreamRest)
      if (clientRest.length > 0) upstream.write(clientRest)
      client.pipe(upstream)
      upstream.pipe(client)
    },
  }
}

function upgradeHead({ fields }: ResponseHead): string {
  let lines = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n'
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i] !== 'content-length') lines += `${fields[i] ?? ''}: ${fields[i + 1] ?? ''}\r\n`
  }
  return `${lines}\r\n`
}
