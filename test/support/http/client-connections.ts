import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { atEndOfFile } from '../run/at-end.ts'

/** A client's connection, and the bytes received over it. */
export type ClientConnection = {
  readonly socket: Socket
  received(): string
  /** How the gateway ended the connection; undefined while it is open. */
  ended(): 'closed' | 'reset' | undefined
  /** Resolves once the received bytes match; rejects if the connection ends first. */
  until(pattern: RegExp): Promise<void>
  readonly closed: Promise<unknown>
}

const sockets = new Set<Socket>()

atEndOfFile(() => {
  for (const socket of sockets) socket.destroy()
  sockets.clear()
})

/** Opens a connection from a loopback address and sends `bytes`. Resolves once it is established, even if the server never accepts it. */
export async function openConnection(port: number, from: string, bytes = ''): Promise<ClientConnection> {
  const socket = connect({ host: '127.0.0.1', port, localAddress: from, noDelay: true })
  sockets.add(socket)
  let received = ''
  let ended: 'closed' | 'reset' | undefined
  const looks = new Set<() => void>()
  const change = (): void => looks.forEach((look) => look())
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1')
    change()
  })
  socket.on('end', () => (ended ??= 'closed'))
  socket.on('error', () => (ended = 'reset'))
  const closed = once(socket, 'close').catch(() => undefined)
  socket.on('close', () => {
    sockets.delete(socket)
    change()
  })
  await once(socket, 'connect')
  if (bytes !== '') socket.write(bytes, 'latin1')
  return {
    socket,
    received: () => received,
    ended: () => ended,
    closed,
    until: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (!pattern.test(received) && !socket.destroyed) return
          looks.delete(look)
          if (pattern.test(received)) resolve()
          else reject(new Error(`ended before ${pattern}; received ${JSON.stringify(received)}`))
        }
        looks.add(look)
        look()
      }),
  }
}

/** Opens `count` connections one after another, each once the response to the one before matches `answer`. */
export async function openConnections(
  count: number,
  port: number,
  from: string,
  bytes = '',
  answer = /^/,
): Promise<ClientConnection[]> {
  const connections: ClientConnection[] = []
  for (let opened = 0; opened < count; opened++) {
    const connection = await openConnection(port, from, bytes)
    await connection.until(answer)
    connections.push(connection)
  }
  return connections
}
