import { randomInt } from 'node:crypto'
import { connect, createServer } from 'node:net'

/** Below the kernel's ephemeral range (32768 on Linux), so that no outgoing connection of another test takes one. */
const lowest = 15_000
const highest = 32_000

/** Test files run side by side, each with ports of its own: what one is about to use, no other finds free. */
const shares = 10
const size = Math.floor((highest - lowest) / shares)
const first = lowest + size * (Number(process.env['VITEST_POOL_ID'] ?? 0) % shares)
let drawn = randomInt(size)

/**
 * A port on which no server of any test listens, nor of another run beside this one: below 1024, and of those that `fetch` takes.
 */
export const CLOSED_PORT = 2

/**
 * A port that nothing listens on, for a process that must be told its port before it starts. If the server runs in
 * the test's own process, listen on port 0 instead.
 *
 * Each comes round again as late as possible: who let go of one for a moment finds it free. Another run on this machine may have
 * dozens in a row, as it takes them one after the other, too.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < size; attempt++) {
    drawn = (drawn + 1) % size
    const port = first + drawn
    if (await canListen(port)) return port
  }
  throw new Error('no free port found')
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(false)
      else reject(error)
    })
    // Without a host: free on every interface, as the gateway listens by default.
    server.listen({ port, exclusive: true }, () => server.close(() => resolve(true)))
  })
}

/** Whether something on this machine takes connections on the port. */
export function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
