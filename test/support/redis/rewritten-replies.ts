import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/**
 * A proxy in front of a Redis that passes commands on unchanged, but rewrites each error and each string in replies, so that a real Redis
 * answers in the words of another engine. Ends as the test ends.
 *
 * @param rewrite takes the text of a reply, and returns the text for the client
 * @returns the port of the proxy
 */
export async function startRewriter(toPort: number, rewrite: (text: string) => string): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const redis = connect(toPort, '127.0.0.1')
    const replies = createRewriting(rewrite)
    for (const [from, to] of [
      [client, redis],
      [redis, client],
    ] as const) {
      sockets.add(from)
      from.on('error', () => to.destroy()).on('close', () => to.destroy())
    }
    client.pipe(redis)
    redis.on('data', (bytes: Buffer) => client.write(replies(bytes.toString('latin1')), 'latin1'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}

/** Rewrites RESP2, in pieces of any size. */
function createRewriting(rewrite: (text: string) => string): (bytes: string) => string {
  let pending = ''
  return (bytes) => {
    pending += bytes
    let out = ''
    for (;;) {
      const end = pending.indexOf('\r\n')
      if (end < 0) return out
      const line = pending.slice(0, end)
      let next = end + 2
      if (line.startsWith('-')) out += `-${rewrite(line.slice(1))}\r\n`
      else if (/^\$\d/.test(line)) {
        next += Number(line.slice(1)) + 2
        if (pending.length < next) return out
        const text = rewrite(pending.slice(end + 2, next - 2))
        out += `$${text.length}\r\n${text}\r\n`
      } else out += `${line}\r\n`
      pending = pending.slice(next)
    }
  }
}
