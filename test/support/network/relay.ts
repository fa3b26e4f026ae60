import { once } from 'node:events'
import { createServer, connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { resetSocket } from '../../../proxy/http/message/reset-socket.ts'
import { freePort } from './ports.ts'
import { atEndOfFile } from '../run/at-end.ts'

/**
 * How a relay treats bytes that arrive from now on, on existing and new connections.
 *
 * - `none`: passes them on.
 * - `delay`: passes them on after a delay, in order.
 * - `trickle`: passes them on in small pieces, with a pause after each.
 * - `pause`: keeps them until the fault is over; bytes that do not fit into the buffers are not read.
 * - `pause-replies`: passes requests on, and keeps their replies until the fault is over.
 * - `swallow-replies`: requests arrive, but their replies are lost.
 * - `swallow`: a black hole: nothing arrives in either direction, and nobody hangs up.
 * - `refuse`: accepts no new connection, and ends the existing ones.
 */
export type RelayFault =
  | { readonly kind: 'none' | 'pause' | 'pause-replies' | 'swallow-replies' | 'swallow' | 'refuse' }
  | { readonly kind: 'delay'; readonly delayMs: number }
  | { readonly kind: 'trickle'; readonly bytes: number; readonly everyMs: number }

/** A point in the network, in front of a Redis or a backend, where the network can fail. */
export type Relay = {
  readonly port: number
  /** The number of connections with at least one open side. */
  readonly size: number
  /**
   * Changes the fault from now on. Once bytes of a direction were swallowed, no later bytes of it pass, because TCP delivers bytes in
   * order; such a connection is reset when nothing is swallowed any more.
   */
  set(fault: RelayFault): Promise<void>
  /** Closes every connection gracefully, on both sides. */
  cut(): void
  /** Resets every connection, on both sides. */
  reset(): void
  /** Turns only the existing connections into black holes, as when a middlebox has forgotten them. */
  strand(): void
  close(): Promise<void>
}

type Direction = 'requests' | 'replies'

type Link = {
  readonly client: Socket
  readonly server: Socket
  /** The directions in which bytes were lost, so that no more may follow. */
  readonly lossy: Set<Direction>
}

const relays = new Set<Relay>()
atEndOfFile(async () => {
  await Promise.all([...relays].map((relay) => relay.close()))
  relays.clear()
})

/** Relays connections from a port of its own to a port of 127.0.0.1, until the end of the test file. */
export async function startRelay(targetPort: number): Promise<Relay> {
  const port = await freePort()
  const links = new Set<Link>()
  let fault: RelayFault = { kind: 'none' }
  let endPause: () => void = () => undefined
  let pause = Promise.resolve()

  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const options = { port: targetPort, host: '127.0.0.1', allowHalfOpen: true, noDelay: true }
    const link: Link = { client, server: connect(options), lossy: new Set() }
    links.add(link)
    carry(link, client, link.server, 'requests')
    carry(link, link.server, client, 'replies')
  })

  /** Passes on the bytes of one side in order, as long as both sides are connected. */
  function carry(link: Link, from: Socket, to: Socket, direction: Direction): void {
    let last: Promise<void> = Promise.resolve()
    const next = (deliver: () => Promise<void> | void): void => {
      last = last.then(deliver)
    }
    from.on('data', (bytes: Buffer) => {
      const arrivedAtMs = performance.now()
      if (fault.kind === 'pause') from.pause()
      next(async () => {
        await deliver(link, to, bytes, direction, arrivedAtMs)
        from.resume()
      })
    })
    from.on('end', () =>
      next(() => {
        if (!isSwallowed(link, direction)) to.end()
      }),
    )
    from.on('error', () => undefined)
    from.on('close', () => {
      if (to.destroyed) links.delete(link)
      next(() => {
        if (!isSwallowed(link, direction)) to.destroySoon()
      })
    })
  }

  async function deliver(
    link: Link,
    to: Socket,
    bytes: Buffer,
    direction: Direction,
    arrivedAtMs: number,
  ): Promise<void> {
    if (fault.kind !== 'pause-replies' || direction === 'replies') await pause
    if (fault.kind === 'delay') await sleep(Math.max(0, arrivedAtMs + fault.delayMs - performance.now()))
    if (isSwallowed(link, direction)) {
      link.lossy.add(direction)
      return
    }
    let rest = bytes
    while (fault.kind === 'trickle' && rest.length > 0) {
      await write(to, rest.subarray(0, fault.bytes))
      rest = rest.subarray(fault.bytes)
      await sleep(fault.everyMs)
    }
    await write(to, rest)
  }

  function isSwallowed({ lossy }: Link, direction: Direction): boolean {
    if (lossy.has(direction) || fault.kind === 'swallow') return true
    return direction === 'replies' && fault.kind === 'swallow-replies'
  }

  function endAll(end: (socket: Socket) => void, which: (link: Link) => boolean = () => true): void {
    for (const link of links) {
      if (!which(link)) continue
      links.delete(link)
      end(link.client)
      end(link.server)
    }
  }

  async function listen(): Promise<void> {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }

  await listen()
  const relay: Relay = {
    port,
    get size() {
      return links.size
    },
    async set(next) {
      const wasRefusing = fault.kind === 'refuse'
      fault = next
      endPause()
      pause = new Promise((resolve) => (endPause = resolve))
      if (!next.kind.startsWith('pause')) endPause()
      if (!next.kind.startsWith('swallow')) endAll(resetSocket, ({ lossy }) => lossy.size > 0)
      if (next.kind === 'refuse' && !wasRefusing) {
        server.close()
        endAll(destroy)
      }
      if (next.kind !== 'refuse' && wasRefusing) await listen()
    },
    cut: () => endAll(destroy),
    reset: () => endAll(resetSocket),
    strand() {
      for (const { lossy } of links) lossy.add('requests').add('replies')
    },
    close() {
      relays.delete(relay)
      endAll(destroy)
      endPause()
      return new Promise((resolve) => (server.listening ? server.close(() => resolve()) : resolve()))
    },
  }
  relays.add(relay)
  return relay
}

function destroy(socket: Socket): void {
  socket.destroy()
}

/** Writes, and waits while the other side does not read. */
async function write(to: Socket, bytes: Buffer): Promise<void> {
  if (bytes.length === 0 || to.destroyed || to.write(bytes)) return
  await new Promise<void>((resolve) => {
    to.once('drain', resolve)
    to.once('close', resolve)
  })
}
