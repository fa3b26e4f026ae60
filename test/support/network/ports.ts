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
/** In one order for all, two runs on a machine would go on to find the same ports free at the same time. */
const step = coprimeTo(size)

function coprimeTo(number: number): number {
  const factor = randomInt(1, number)
  return commonDivisor(factor, number) === 1 ? factor : coprimeTo(number)
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b)
}

/**
 * A port on which no server of any test listens, nor of another run beside this one: below 1024, and of those that `fetch` takes.
 */
export const CLOSED_PORT = 2

/**
 * A port that nothing listens on, for a process that must be told its port before it starts. If the server runs in
 * the test's own process, listen on port 0 instead.
 *
 * Each comes round again as late as possible: who let go of one for a moment finds it free.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < size; attempt++) {
    drawn = (drawn + step) % size
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
