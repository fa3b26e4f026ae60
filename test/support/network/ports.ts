import { randomInt } from 'node:crypto'
import { connect, createServer } from 'node:net'

/** Below the kernel's ephemeral range (from 32768 on Linux), so that no outgoing connection of another test takes one of these ports. */
const lowest = 15_000
const highest = 32_000

/** Test files run side by side, each with its own share of the ports, so that none takes a port that another is about to use. */
const shares = 10
const size = Math.floor((highest - lowest) / shares)
const first = lowest + size * (Number(process.env['VITEST_POOL_ID'] ?? 0) % shares)
let drawn = randomInt(size)
/** A random step: if all runs used the same order, two runs on a machine would keep finding the same ports free at the same time. */
const step = coprimeTo(size)

function coprimeTo(number: number): number {
  const factor = randomInt(1, number)
  return commonDivisor(factor, number) === 1 ? factor : coprimeTo(number)
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b)
}

/**
 * A port on which no server of any test listens, in this run or another: it is below 1024, but not one that `fetch` blocks.
 */
export const CLOSED_PORT = 2

/**
 * Returns a port that nothing listens on, for a process that needs its port before it starts. If the server runs in the test's own process,
 * listen on port 0 instead.
 *
 * Each port is reused as late as possible, so that a server that restarts finds its port still free.
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
    // Without a host, so that the port is free on every interface, where the gateway listens by default.
    server.listen({ port, exclusive: true }, () => server.close(() => resolve(true)))
  })
}

/** Whether something on this machine accepts connections on the port. */
export function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
