import { once } from 'node:events'
import { createServer, connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { resetSocket } from '../../../proxy/http/message/reset-socket.ts'
import { freePort } from './ports.ts'
import { atEndOfFile } from '../run/at-end.ts'

/**
 * How a relay treats bytes that arrive from now on, on connections old and new.
 *
 * - `none`: passes it on.
 * - `delay`: passes it on that much later, in order.
 * - `trickle`: passes it on in pieces of so many bytes, with a pause after each.
 * - `pause`: keeps it until the fault is over; bytes that do not fit into the buffers are not read.
 * - `swallow-replies`: requests arrive, their replies are lost.
 * - `swallow`: a black hole: nothing arrives, nothing comes back, and nobody hangs up.
 * - `refuse`: no connection is accepted, and those there are end.
 */
export type RelayFault =
  | { readonly kind: 'none' | 'pause' | 'swallow-replies' | 'swallow' | 'refuse' }
  | { readonly kind: 'delay'; readonly delayMs: number }
  | { readonly kind: 'trickle'; readonly bytes: number; readonly everyMs: number }

/** A place in the network, before a Redis or a backend, where the network can fail. */
export type Relay = {
  readonly port: number
  /** Connections of which one side is open at least. */
  readonly size: number
  /**
   * Changes what happens from now on. Once bytes of a direction were swallowed, none of it follow, as TCP has it; such
   * a connection is reset when nothing is swallowed any more.
   */
  set(fault: RelayFault): Promise<void>
  /** Ends every connection in order, on both sides. */
  cut(): void
  /** Ends every connection with RST, on both sides. */
  reset(): void
  /** Turns the connections there are into black holes, and them alone: a middle box has forgotten them. */
  strand(): void
  close(): Promise<void>
}

type Direction = 'requests' | 'replies'

type Link = {
  readonly client: Socket
  readonly server: Socket
  /** Bytes were lost on the way, so no more may follow them. */
  readonly lossy: Set<Direction>
}

const relays = new Set<Relay>()
atEndOfFile(async () => {
  await Promise.all([...relays].map((relay) => relay.close()))
  relays.clear()
})

/** Relays connections to a port of 127.0.0.1 from a port of its own, until the end of the test file. */
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

  /** Passes on the bytes of one side, in order, for as long as both are connected. */
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
    await pause
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
      if (next.kind !== 'pause') endPause()
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

/** Writes, and waits where the other side does not take it. */
async function write(to: Socket, bytes: Buffer): Promise<void> {
  if (bytes.length === 0 || to.destroyed || to.write(bytes)) return
  await new Promise<void>((resolve) => {
    to.once('drain', resolve)
    to.once('close', resolve)
  })
}
