import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * A port that nothing listens on, for a process that must be told its port before it starts. Where the server runs in
 * the test's own process, listen on port 0 instead.
 *
 * Drawn from below the kernel's ephemeral range (32768 on Linux), so that no outgoing connection of another test takes
 * it in the meantime.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const port = randomInt(15_000, 32_000)
    if (await canListen(port)) return port
  }
  throw new Error('no free port found')
}

export function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    // Without a host: free on every interface, as the gateway listens by default.
    server.listen({ port, exclusive: true }, () => server.close(() => resolve(true)))
  })
}
