import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { writeSwitchingHead } from '../http1/response.ts'
import type { ResponseHead } from '../upstream/response/response-head.ts'
import { FrameBoundary } from './frame-boundary.ts'
import { withoutLength } from './response-fields.ts'

/** The open tunnels, and how to close them all. */
export type Tunnels = {
  /**
   * Forwards bytes in both directions between a client and the backend until one side ends, or nothing is sent for the
   * idle time. The end of one side is forwarded to the other after all data.
   *
   * @param clientRest bytes that the client sent after its handshake, already read
   * @param upstreamRest bytes that the backend sent after its 101, already read
   */
  open(client: Duplex, clientRest: Buffer, head: ResponseHead, upstream: Socket, upstreamRest: Buffer): void
  readonly size: number
  /** Ends every tunnel, including those opened later, and gives bytes in transit a moment to arrive. */
  closeAll(): void
}

export type TunnelOptions = {
  readonly idleMs: number
  readonly onOpen: () => void
  readonly onClose: () => void
}

/** How long one side may take to close after the other has closed, or after both were asked to close. */
const CLOSING_MS = 2_000

// Close frames with status 1001, "going away" (RFC 6455 sections 5.5.1 and 7.4.1): one for a client, and a masked one, because frames to a
// server must be masked. A mask protects against attacker-chosen content. These frames have none, so the mask is all zeros.
const goingAway = Buffer.from([0x88, 0x02, 0x03, 0xe9])
const maskedGoingAway = Buffer.from([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9])

/** Creates an empty set of tunnels. Each tunnel calls `onOpen` and, once, `onClose`. */
export function createTunnels({ idleMs, onOpen, onClose }: TunnelOptions): Tunnels {
  const open = new Set<Tunnel>()
  let closing = false
  return {
    get size() {
      return open.size
    },
    closeAll() {
      closing = true
      for (const tunnel of open) tunnel.goAway()
    },
    open(client, clientRest, head, upstream, upstreamRest) {
      client.write(switchingHead(head), 'latin1')
      const tunnel = new Tunnel(client, upstream, isWebSocket(head), idleMs, () => {
        // Called twice if both sides were destroyed before the first `close` event.
        if (open.delete(tunnel)) onClose()
      })
      open.add(tunnel)
      onOpen()
      if (upstreamRest.length > 0) upstream.unshift(upstreamRest)
      if (clientRest.length > 0) client.unshift(clientRest)
      tunnel.begin()
      if (closing) tunnel.goAway()
    },
  }
}

/** One direction of a tunnel: the bytes from `socket` to `peer`, and the frame with which the gateway ends it. */
type Side = {
  readonly socket: Duplex
  readonly peer: Duplex
  readonly boundary: Pick<FrameBoundary, 'isReached' | 'pass'>
  readonly goodbye: Buffer
}

/** The boundary for protocols other than WebSocket. The gateway does not know their frames, so they may be ended after any byte. */
const anywhere = { isReached: true, pass: () => undefined }
const nothing = Buffer.alloc(0)

class Tunnel {
  readonly #sides: readonly Side[]
  readonly #upstream: Socket
  readonly #idleMs: number
  readonly #onClose: () => void
  #timer: NodeJS.Timeout | undefined

  constructor(client: Duplex, upstream: Socket, hasFrames: boolean, idleMs: number, onClose: () => void) {
    const side = (socket: Duplex, peer: Duplex, goodbye: Buffer): Side =>
      hasFrames
        ? { socket, peer, boundary: new FrameBoundary(), goodbye }
        : { socket, peer, boundary: anywhere, goodbye: nothing }
    this.#sides = [side(client, upstream, maskedGoingAway), side(upstream, client, goingAway)]
    this.#upstream = upstream
    this.#idleMs = idleMs
    this.#onClose = onClose
  }

  begin(): void {
    for (const { socket, peer, boundary } of this.#sides) {
      // Each error is followed by `close`, which handles it.
      socket.on('error', () => undefined)
      socket.on('close', () => this.#closed())
      socket.on('data', (chunk: Buffer) => boundary.pass(chunk))
      socket.pipe(peer)
    }
    // Bytes in either direction pass through this socket, so only this socket needs an idle timeout.
    this.#upstream.setTimeout(this.#idleMs, () => this.goAway())
  }

  /** Ends both directions. A WebSocket is ended with a close frame, as soon as the forwarded bytes end with a complete frame. */
  goAway(): void {
    if (this.#timer) return
    this.#endSoon()
    for (const side of this.#sides) {
      const { socket, peer, boundary, goodbye } = side
      const end = (): void => {
        if (!boundary.isReached || peer.writableEnded) return
        socket.off('data', end)
        socket.unpipe(peer)
        socket.resume()
        peer.end(goodbye)
      }
      socket.on('data', end)
      end()
    }
  }

  /** Handles the close of one side. Bytes that it has sent may still reach the other side. */
  #closed(): void {
    for (const { socket } of this.#sides) socket.end()
    this.#endSoon()
    if (!this.#sides.every(({ socket }) => socket.destroyed)) return
    clearTimeout(this.#timer)
    this.#onClose()
  }

  #endSoon(): void {
    this.#timer ??= setTimeout(() => {
      for (const { socket } of this.#sides) socket.destroy()
    }, CLOSING_MS)
  }
}

function isWebSocket({ upgrade }: ResponseHead): boolean {
  return upgrade?.toLowerCase() === 'websocket'
}

function switchingHead(head: ResponseHead): string {
  const { fields, upgrade = '' } = head
  return writeSwitchingHead(isWebSocket(head) ? 'websocket' : upgrade, withoutLength(fields))
}
